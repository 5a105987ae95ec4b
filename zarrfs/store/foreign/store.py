"""A file of another format as a store, through references to its chunks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from threading import Lock
from typing import Any, TypeVar, cast

from zarrfs import bounds
from zarrfs.errors import DecodeError, StoreError, StoreTooLarge
from zarrfs.isolation.decoders import isolated
from zarrfs.store.base import Blob, ByteRange, Generation, ObjectInfo, Store
from zarrfs.store.foreign.found import KEY
from zarrfs.store.foreign.kept import generation_of, made, path_for_others, references
from zarrfs.store.foreign.kinds import CHANGED, Kind
from zarrfs.store.ranges import resolve
from zarrfs.store.wrappers.wrapper import StoreWrapper

_T = TypeVar("_T")

_DOCUMENT = "zarr.json"
_BOX_PROGRAM = "zarrfs.store.foreign.hdf5_boxes"
# HDF5 and its filters take some times as much memory as a chunk has, and libraries.
_MEMORY, _TIMES = 1 << 30, 6
_LARGEST_TEXT = 256 << 20
_TRIES = 3


def open_foreign(
    path: str,
    shown: str,
    kind: Kind,
    directory: str | None,
    seconds: float,
    open_url: Callable[[str], Store],
) -> Store:
    """Open the file at ``path`` as a store, through references to its chunks.

    path : absolute, without links; or that of an open file, which must stay open.
    shown : its path in messages.
    directory : where references are kept; None: they are not kept.
    seconds : that finding the chunks of the file may take.
    open_url : opens a URL that fsspec knows.

    Raises UsageError if a package is missing, StoreError if the file cannot be served.
    """
    for again in (False, True):
        generation = generation_of(path)
        with references(path, shown, kind, generation, directory, seconds, again=again) as document:
            # fsspec reads all of it.
            inner = open_url(f"reference::file:///proc/self/fd/{document.fileno()}")
            document.seek(0)
            digest = blake2b(document.read()).digest()

        def is_as_described(digest: bytes = digest) -> bool:
            return blake2b(made(path, shown, kind, seconds)).digest() == digest

        store = ForeignFile(inner, path, shown, generation, is_as_described)
        # References that were kept may be older than other files that they lead to.
        if again or not store.outdated:
            return store
        store.close()
    raise AssertionError("the second references are served")


class ForeignFile(StoreWrapper):
    """References to a file, valid while the file is as it was when they were made.

    A program that writes the file may move its chunks. The bytes at the old offsets would then
    belong to other chunks.

    Shared state, under ``_lock``: ``_last``, the bytes of the last box. ``_states`` is replaced
    as a whole, under ``_looking``.
    """

    def __init__(
        self,
        inner: Store,
        path: str,
        shown: str,
        generation: Generation,
        is_as_described: Callable[[], bool],
    ) -> None:
        """
        path : with which the file is opened.
        shown : its path in messages.
        generation : of the file before its references were made.
        is_as_described : whether references that are made anew are the same.
        """
        super().__init__(inner)
        self._path = path
        self._shown = shown
        blob = inner.get(KEY, limit=bounds.LARGEST_REFERENCES)
        more = {} if blob is None else json.loads(bytes(blob.data))
        self._boxes: dict[str, Any] = more.get("boxes", {})
        self._notes: dict[str, str] = more.get("notes", {})
        self._states: dict[str, Generation] = {path: generation}
        self._states |= {other: tuple(state) for other, state in more.get("others", {}).items()}
        self._lock = Lock()
        self._looking = Lock()
        self._is_as_described = is_as_described
        self._last: tuple[str, dict[str, Generation], bytes] | None = None

    @property
    def url(self) -> str:
        return f"file://{self._shown}"

    @property
    def read_only(self) -> str | None:
        return "chunks of a file of another format cannot be replaced"

    @property
    def outdated(self) -> bool:
        """Whether another file that holds data is not as it was."""
        try:
            return any(
                generation_of(path) != state
                for path, state in self._states.items()
                if path != self._path
            )
        except StoreError:
            return True

    def get(self, key: str, *, limit: int) -> Blob | None:
        return self._unchanged(key, lambda: self._get(key, limit))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        def ask() -> list[Blob] | None:
            found = self._inner.get_ranges(key, ranges)
            if found is not None or (place := self._place(key)) is None:
                return found
            data = self._box(key, *place)
            spans = [resolve(wanted, len(data)) for wanted in ranges]
            info = self._info_of(len(data))
            return [Blob(data[span.start : span.stop], info) for span in spans]

        return self._unchanged(key, ask)

    def info(self, key: str) -> ObjectInfo | None:
        def ask() -> ObjectInfo | None:
            if (found := self._inner.info(key)) is not None:
                return found
            if (place := self._place(key)) is None:
                return None
            size = _size(place[0])
            return self._info_of(len(self._box(key, *place)) if size is None else size)

        return self._unchanged(key, ask)

    def list_dir(self, prefix: str) -> Iterator[str]:
        if (names := self._names(prefix)) is not None:
            return names
        return (name for name in self._inner.list_dir(prefix) if name != KEY)

    def _get(self, key: str, limit: int) -> Blob | None:
        if (reason := self._notes.get(key.removesuffix(_DOCUMENT).rstrip("/"))) is not None:
            raise StoreError(key, reason)
        found = self._inner.get(key, limit=limit)
        if found is not None or (place := self._place(key)) is None:
            return found
        if (size := _size(place[0])) is not None and size > limit:
            raise StoreTooLarge(key, f"has {size} bytes, at most {limit} are allowed")
        data = self._box(key, *place)
        if len(data) > limit:
            raise StoreTooLarge(key, f"has {len(data)} bytes, at most {limit} are allowed")
        return Blob(data, self._info_of(len(data)))

    # --- boxes ------------------------------------------------------------------

    def _place(self, key: str) -> tuple[dict[str, Any], list[int]] | None:
        """The box that a chunk's key is in, and the chunk's index; None if there is none."""
        parts = key.split("/")
        if not self._boxes or "c" not in parts:
            return None
        at = len(parts) - 1 - parts[::-1].index("c")
        box = self._boxes.get("/".join(parts[:at]))
        if box is None or len(parts) - at - 1 != len(box["shape"]):
            return None
        with suppress(ValueError):
            index = [int(part) for part in parts[at + 1 :]]
            if [str(i) for i in index] == parts[at + 1 :] and all(
                0 <= i < count for i, count in zip(index, _counts(box), strict=True)
            ):
                return box, index
        return None

    def _box(self, key: str, box: dict[str, Any], index: list[int]) -> bytes:
        """The decoded bytes of a chunk that HDF5 reads, at the place that `_place` returns."""
        states = self._states
        with self._lock:
            if self._last is not None and self._last[0] == key and self._last[1] is states:
                return self._last[2]
        size = _size(box)
        try:
            # Shared by all files, so that many of them have few processes.
            data = isolated(_BOX_PROGRAM).decode(
                {"box": box, "index": index, "file": box["file"] or path_for_others(self._path)},
                b"",
                size=_LARGEST_TEXT if size is None else size,
                memory=_MEMORY + _TIMES * (size or _LARGEST_TEXT),
                exact=size is not None,
            )
        except DecodeError as error:
            raise StoreError(key, f"HDF5 cannot read it: {error}") from error
        with self._lock:
            self._last = key, states, data
        return data

    def _names(self, prefix: str) -> Iterator[str] | None:
        """The names of chunks below ``prefix``; None if no box has any there."""
        parts = prefix.split("/")
        for depth in range(len(parts) + 1):
            box = self._boxes.get("/".join(parts[: len(parts) - depth]))
            if box is None or (not prefix and depth):
                continue
            below = parts[len(parts) - depth :] if prefix else []
            counts = _counts(box)
            if not below:
                directory = "c/" if counts else "c"
                return iter([_DOCUMENT, directory] if math.prod(counts) else [_DOCUMENT])
            if below[0] != "c" or len(below) > len(counts):
                return None
            end = "" if len(below) == len(counts) else "/"
            return (f"{i}{end}" for i in range(counts[len(below) - 1]))
        return None

    @staticmethod
    def _info_of(size: int) -> ObjectInfo:
        return ObjectInfo(size, None, ())

    def _unchanged(self, key: str, ask: Callable[[], _T]) -> _T:
        """The result of ``ask``, made while the files were in one state."""
        for _ in range(_TRIES):
            before = self._states
            found = ask()
            now = {path: generation_of(path) for path in before}
            if now == before:
                return cast(_T, _of_state(found, before))
            self._look_again(key, now)
        raise StoreError(key, f"{self._shown} {CHANGED}")

    def _look_again(self, key: str, now: dict[str, Generation]) -> None:
        """Go on with a file of another ctime if its chunks still lie where they did."""
        with self._looking:
            if now == self._states:
                return
            for path, state in self._states.items():
                if now[path][:-1] != state[:-1]:
                    name = self._shown if path == self._path else path
                    raise StoreError(key, f"{name} {CHANGED}")
            if not self._is_as_described():
                raise StoreError(key, f"{self._shown} {CHANGED}")
            self._states = now


def _of_state(found: Any, states: dict[str, Generation]) -> Any:
    """Objects, or what is said of one, as those of files in these states."""
    if isinstance(found, list):
        return [_of_state(blob, states) for blob in found]
    if isinstance(found, Blob):
        return found._replace(info=_of_state(found.info, states))
    if isinstance(found, ObjectInfo):
        return found._replace(generation=(*found.generation, *sorted(states.items())))
    return found


def _counts(box: dict[str, Any]) -> list[int]:
    return [-(-n // c) for n, c in zip(box["shape"], box["chunks"], strict=True)]


def _size(box: dict[str, Any]) -> int | None:
    """Bytes of each chunk; None for text, whose chunks differ."""
    return None if box["dtype"] is None else int(math.prod(box["chunks"]) * box["item"])
