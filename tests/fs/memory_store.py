"""A store in memory, whose objects a test replaces at will."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Self

from zarrfs.errors import StoreTooLarge
from zarrfs.store.base import (
    Blob,
    ByteRange,
    ObjectInfo,
    Store,
    StoreTraits,
)
from zarrfs.store.ranges import check_key, resolve


class MemoryStore(Store):
    """Every object that is put makes a new generation, even of equal bytes."""

    url = "memory://"
    traits = StoreTraits(near=True)

    def __init__(self, objects: Mapping[str, bytes] | None = None, *, cheap: bool = True) -> None:
        self.traits = StoreTraits(near=cheap)
        self.objects: dict[str, bytes] = {}
        self._generations: dict[str, int] = {}
        self._numbers = count(1)
        self._lock = threading.RLock()
        for key, data in (objects or {}).items():
            self.replace(key, data)

    @classmethod
    def of_directory(cls, root: Path, *, cheap: bool = True) -> Self:
        """A copy of what a directory holds."""
        files = [path for path in root.rglob("*") if path.is_file()]
        return cls({str(p.relative_to(root)): p.read_bytes() for p in files}, cheap=cheap)

    def replace(self, key: str, data: bytes | None) -> None:
        """What another program does, None: delete."""
        with self._lock:
            if data is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = data
                self._generations[key] = next(self._numbers)

    def put(self, key: str, data: bytes) -> None:
        self.replace(key, data)

    def delete(self, key: str) -> None:
        self.replace(key, None)

    def get(self, key: str, *, limit: int) -> Blob | None:
        with self._lock:
            if (info := self._info(key)) is None:
                return None
            if info.size > limit:
                raise StoreTooLarge(key, f"has {info.size} bytes, more than the {limit} allowed")
            return Blob(self.objects[key], info)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        with self._lock:
            if (info := self._info(key)) is None:
                return None
            # Slices of one buffer, as a store that merges neighbours returns them.
            data = memoryview(self.objects[key])
        spans = [resolve(wanted, info.size) for wanted in ranges]
        return [Blob(data[span.start : span.stop], info) for span in spans]

    def info(self, key: str) -> ObjectInfo | None:
        with self._lock:
            return self._info(key)

    def _info(self, key: str) -> ObjectInfo | None:
        check_key(key)
        if (data := self.objects.get(key)) is None:
            return None
        generation = self._generations[key]
        return ObjectInfo(len(data), generation, (generation,))

    def list_dir(self, prefix: str) -> Iterator[str]:
        start = f"{prefix}/" if prefix else ""
        with self._lock:
            below = [key.removeprefix(start) for key in self.objects if key.startswith(start)]
        yield from sorted({name.partition("/")[0] + "/" * ("/" in name) for name in below})

    def close(self) -> None:
        pass
