"""A remote store with a cache on disk, across mounts and restarts."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from zarrfs.errors import StoreError
from zarrfs.store.base import Blob, ByteRange, Data, Expected, ObjectInfo, Put, Store
from zarrfs.store.ranges import Span, resolve
from zarrfs.store.wrappers.cache_files import CacheFiles
from zarrfs.store.wrappers.wrapper import StoreWrapper

_ASKERS = 32
_REMEMBERED = 1 << 18


class DiskCacheStore(StoreWrapper):
    """The store ``inner``, which keeps the objects that it reads in ``files``.

    The kept bytes of an object are used if the store has confirmed, at most ``recheck`` seconds
    ago, that the object is still in the state of these bytes. Otherwise the store gets a
    request for the state alone, which transfers no bytes of the object.

    identity : distinguishes this store from all others whose objects are in the same files.
    recheck : seconds; infinite if objects never change, and then no state is requested.
    never : last components of keys whose objects are not kept.

    Shared state, under ``_lock``: ``_infos``, the state of each object and when the store reported
    it.
    """

    def __init__(
        self,
        inner: Store,
        files: CacheFiles,
        identity: str,
        recheck: float,
        never: Collection[str] = (),
    ) -> None:
        super().__init__(inner)
        self._files = files
        self._identity = identity
        self._recheck = recheck
        self._never = frozenset(never)
        self._lock = Lock()
        self._infos: dict[str, tuple[ObjectInfo, float]] = {}

    def get(self, key: str, *, limit: int) -> Blob | None:
        if not self._keeps(key):
            return self._inner.get(key, limit=limit)
        if (kept := self._kept_whole(key, limit)) is not None:
            return kept
        blob = self._inner.get(key, limit=limit)
        self._note(key, blob)
        return blob

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        found = dict(zip(keys, self._all_kept(keys, limit), strict=True))
        missing = [key for key in keys if found[key] is None]
        fetched = self._inner.get_many(missing, limit=limit)
        for key in keys:
            if (kept := found[key]) is not None:
                yield kept
                continue
            blob = next(fetched)
            if not isinstance(blob, StoreError) and self._keeps(key):
                self._note(key, blob)
            yield blob

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        if not ranges or not self._keeps(key):
            return self._inner.get_ranges(key, ranges)
        info = self._current(key)
        blobs: list[Blob | None] = [None] * len(ranges)
        if info is not None:
            for number, wanted in enumerate(ranges):
                blobs[number] = self._kept(key, info, resolve(wanted, info.size))
        missing = [wanted for wanted, blob in zip(ranges, blobs, strict=True) if blob is None]
        if missing:
            fetched = self._inner.get_ranges(key, missing)
            if fetched is None:
                self._forget(key)
                return None
            self._note_ranges(key, missing, fetched)
            if info is not None and fetched[0].info.generation != info.generation:
                # The kept bytes are of another state than the bytes that have arrived now.
                return self._inner.get_ranges(key, ranges)
            coming = iter(fetched)
            blobs = [next(coming) if blob is None else blob for blob in blobs]
        return [blob for blob in blobs if blob is not None]

    def info(self, key: str) -> ObjectInfo | None:
        info = self._inner.info(key)
        self._remember(key, info)
        return info

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        # Whether the write succeeds or fails, the known state is no longer valid.
        try:
            return self._inner.put(key, parts, expected=expected)
        finally:
            self._forget(key)

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        try:
            return self._inner.put_many(puts)
        finally:
            for put in puts:
                self._forget(put.key)

    def delete(self, key: str, *, expected: Expected) -> None:
        try:
            self._inner.delete(key, expected=expected)
        finally:
            self._forget(key)

    def _keeps(self, key: str) -> bool:
        return key.rpartition("/")[2] not in self._never

    def _name(self, key: str) -> str:
        return f"{self._identity}\0{key}"

    def _current(self, key: str) -> ObjectInfo | None:
        """The state of an object of which a part is kept, else None; may send a request."""
        name = self._name(key)
        if not self._files.holds(name):
            return None
        with self._lock:
            known = self._infos.get(key)
        if known is not None and time.monotonic() - known[1] < self._recheck:
            return known[0]
        if self._recheck == math.inf:
            kept = self._files.read(name, Span(0, 0), None)
            if kept is not None:
                self._remember(key, kept.info)
                return kept.info
        return self.info(key)

    def _kept_whole(self, key: str, limit: int) -> Blob | None:
        info = self._current(key)
        if info is None or info.size > limit:
            return None
        return self._kept(key, info, Span(0, info.size))

    def _kept(self, key: str, info: ObjectInfo, span: Span) -> Blob | None:
        if span.start == span.stop:
            return Blob(b"", info)
        part = self._files.read(self._name(key), span, info.generation)
        if part is None:
            return None
        data = part.data[span.start - part.start : span.stop - part.start]
        # A view would keep the whole part in memory.
        return Blob(bytes(data) if 2 * len(data) < len(part.data) else data, info)

    def _all_kept(self, keys: Sequence[str], limit: int) -> list[Blob | None]:
        def kept(key: str) -> Blob | None:
            try:
                return self._kept_whole(key, limit) if self._keeps(key) else None
            except StoreError:
                return None  # reading it will raise the error

        if len(keys) <= 1:
            return list(map(kept, keys))
        with ThreadPoolExecutor(min(_ASKERS, len(keys)), "kept") as pool:
            return list(pool.map(kept, keys))

    def _note(self, key: str, blob: Blob | None) -> None:
        """Record the state, and keep the bytes, of a whole object that the store has sent."""
        self._remember(key, None if blob is None else blob.info)
        if blob is not None and _identifies_state(blob.info):
            self._files.keep(self._name(key), blob.info, 0, blob.data)

    def _note_ranges(self, key: str, ranges: Sequence[ByteRange], blobs: Sequence[Blob]) -> None:
        self._remember(key, blobs[0].info)
        for wanted, blob in zip(ranges, blobs, strict=True):
            if len(blob.data) and _identifies_state(blob.info):
                start = resolve(wanted, blob.info.size).start
                self._files.keep(self._name(key), blob.info, start, blob.data)

    def _remember(self, key: str, info: ObjectInfo | None) -> None:
        if info is None:
            self._forget(key)
            return
        with self._lock:
            self._infos.pop(key, None)
            self._infos[key] = info, time.monotonic()
            if len(self._infos) > _REMEMBERED:
                del self._infos[next(iter(self._infos))]

    def _forget(self, key: str) -> None:
        with self._lock:
            self._infos.pop(key, None)


def _identifies_state(info: ObjectInfo) -> bool:
    """Whether the generation contains more than the size, and can be serialised."""
    said = [part for part in info.generation if part is not None]
    return len(said) > 1 and all(isinstance(part, str | int) for part in said)
