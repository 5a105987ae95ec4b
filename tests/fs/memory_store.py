"""A store in memory, whose objects a test replaces at will."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

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
    """Every `put` makes a new generation, even of equal bytes."""

    url = "memory://"
    traits = StoreTraits(near=True)

    def __init__(self, objects: Mapping[str, bytes] | None = None, *, cheap: bool = True) -> None:
        self.traits = StoreTraits(near=cheap)
        self.objects: dict[str, bytes] = {}
        self._generations: dict[str, int] = {}
        self._numbers = count(1)
        for key, data in (objects or {}).items():
            self.put(key, data)

    @classmethod
    def of_directory(cls, root: Path, *, cheap: bool = True) -> MemoryStore:
        """A copy of what a directory holds."""
        files = [path for path in root.rglob("*") if path.is_file()]
        return cls({str(p.relative_to(root)): p.read_bytes() for p in files}, cheap=cheap)

    def put(self, key: str, data: bytes) -> None:
        self.objects[key] = data
        self._generations[key] = next(self._numbers)

    def delete(self, key: str) -> None:
        del self.objects[key]

    def get(self, key: str, *, limit: int) -> Blob | None:
        if (info := self.info(key)) is None:
            return None
        if info.size > limit:
            raise StoreTooLarge(key, f"has {info.size} bytes, more than the {limit} allowed")
        return Blob(self.objects[key], info)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        if (info := self.info(key)) is None:
            return None
        # Slices of one buffer, as a store that merges neighbours returns them.
        data = memoryview(self.objects[key])
        spans = [resolve(wanted, info.size) for wanted in ranges]
        return [Blob(data[span.start : span.stop], info) for span in spans]

    def info(self, key: str) -> ObjectInfo | None:
        check_key(key)
        if (data := self.objects.get(key)) is None:
            return None
        generation = self._generations[key]
        return ObjectInfo(len(data), generation, (generation,))

    def list_dir(self, prefix: str) -> Iterator[str]:
        start = f"{prefix}/" if prefix else ""
        below = (key.removeprefix(start) for key in self.objects if key.startswith(start))
        yield from sorted({name.partition("/")[0] + "/" * ("/" in name) for name in below})

    def close(self) -> None:
        pass
