"""A file of another format as a store, through references to its chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from zarrfs.errors import StoreError
from zarrfs.store.base import Blob, ByteRange, Generation, ObjectInfo, Store
from zarrfs.store.foreign.found_targets import FoundTargets
from zarrfs.store.foreign.kept import generation_of, references
from zarrfs.store.foreign.kinds import CHANGED, REFERENCES, Kind
from zarrfs.store.remote.references.targets import Targets
from zarrfs.store.wrappers.wrapper import StoreWrapper

_T = TypeVar("_T")


def open_foreign(
    path: str,
    kind: Kind,
    directory: str | None,
    seconds: float,
    open_url: Callable[[str], Store],
) -> Store:
    """Open the file at ``path`` as a store.

    directory : where references are kept; None: they are not kept.
    seconds : that finding the chunks of the file may take.
    open_url : opens a URL that fsspec knows.

    Raises UsageError if a package is missing, StoreError if the file cannot be served.
    """
    path = os.path.realpath(path)
    if kind is REFERENCES:
        return open_url(f"reference::file://{path}")
    return _open(path, path, kind, directory, seconds, open_url)


def open_found(
    fd: int,
    shown: str,
    kind: Kind,
    directory: str | None,
    seconds: float,
    open_url: Callable[[str, Targets], Store],
    open_target: Callable[[str], int],
) -> Store:
    """As `open_foreign`, for the open file ``fd``, which must stay open; ``shown`` is its path.

    open_target : opens what a document of references names. Raises OSError.
    """
    path = f"/proc/self/fd/{fd}"
    if kind is REFERENCES:
        return open_url(f"reference::file://{path}", FoundTargets(open_target))
    # The references to its chunks name this file only.
    targets = FoundTargets(lambda _: os.dup(fd))
    return _open(path, shown, kind, directory, seconds, lambda url: open_url(url, targets), fd)


def _open(
    path: str,
    shown: str,
    kind: Kind,
    directory: str | None,
    seconds: float,
    open_url: Callable[[str], Store],
    fd: int | None = None,
) -> Store:
    generation = generation_of(path)
    with references(path, shown, kind, generation, directory, seconds, fd) as document:
        # fsspec reads all of it.
        inner = open_url(f"reference::file:///proc/self/fd/{document.fileno()}")
    return ForeignFile(inner, path, shown, generation)


class ForeignFile(StoreWrapper):
    """References to a file, valid while the file is as it was when they were made.

    A program that writes the file may move its chunks. The bytes at the old offsets would then
    belong to other chunks.
    """

    def __init__(self, inner: Store, path: str, shown: str, generation: Generation) -> None:
        """
        path : with which the file is opened.
        shown : its path in messages.
        generation : of the file before its references were made.
        """
        super().__init__(inner)
        self._path = path
        self._shown = shown
        self._generation = generation

    @property
    def url(self) -> str:
        return f"file://{self._shown}"

    @property
    def read_only(self) -> str | None:
        return "chunks of a file of another format cannot be replaced"

    def get(self, key: str, *, limit: int) -> Blob | None:
        return self._unchanged(key, lambda: self._inner.get(key, limit=limit))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._unchanged(key, lambda: self._inner.get_ranges(key, ranges))

    def info(self, key: str) -> ObjectInfo | None:
        return self._unchanged(key, lambda: self._inner.info(key))

    def _unchanged(self, key: str, ask: Callable[[], _T]) -> _T:
        found = ask()
        if generation_of(self._path) != self._generation:
            raise StoreError(key, f"{self._shown} {CHANGED}")
        return found
