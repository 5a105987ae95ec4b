"""The store protocol: bytes by key, each with a generation.

A key is a ``/``-separated relative path with no empty, ``.`` or ``..``
component; the empty string names the root and is only valid as a prefix. A
store never follows a key out of its root. All methods block and may be called
from any number of threads at once.

A missing object is ``None``; every other failure is a `zarrfs.errors.StoreError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from zarrfs.errors import StoreError

Generation = tuple[object, ...]
"""Identifies one state of an object: equal generations mean equal bytes.

Local: ``(mtime_ns, inode, size, ctime_ns)``. Remote: whatever of ETag, version and
times the service tells, and the size.
"""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """``length`` bytes from ``offset``; a negative ``offset`` counts from the end.

    A range that reaches past the object's end is cut there, and one that
    starts before its beginning starts at 0 (as HTTP suffix ranges do).
    """

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """``size`` in bytes, ``mtime_ns`` since the epoch (None: the store does not tell)."""

    size: int
    mtime_ns: int | None
    generation: Generation


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes of an object, and which state of the object they are of.

    ``data`` are the bytes asked for, ``info`` describes the whole object.
    """

    data: bytes | memoryview
    info: ObjectInfo


class Store(Protocol):
    """Read access to objects below one root.

    url : what to show a user; never holds credentials.
    local_path : absolute path of the root where the store is a local directory.
    cheap_stat : whether `info` costs microseconds rather than a round trip.
    """

    @property
    def url(self) -> str: ...

    @property
    def local_path(self) -> str | None: ...

    @property
    def cheap_stat(self) -> bool: ...

    def get(self, key: str, *, limit: int) -> Blob | None:
        """The whole object.

        limit : refuse with `StoreError` an object of more bytes than this,
            before memory is taken for it.
        """
        ...

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        """Several parts of one object, all of the same generation, in the order asked.

        The store decides how many requests that takes. Raises `StoreConflict`
        where the object keeps changing between them.
        """
        ...

    def info(self, key: str) -> ObjectInfo | None:
        """Size and generation, without the bytes."""
        ...

    def list_dir(self, prefix: str) -> Iterator[str]:
        """The names directly below ``prefix``; a name that has children ends in ``/``.

        Streams: the first names come before the last are known. Nothing is
        yielded where ``prefix`` does not exist. Raises `StoreListingUnsupported`
        where the store cannot list.
        """
        ...

    def free_space(self) -> tuple[int, int] | None:
        """``(total, free)`` in bytes of what holds the store, where that can be known."""
        ...

    def close(self) -> None:
        """Release connections and threads. Idempotent."""
        ...


def check_key(key: str) -> str:
    """``key`` itself if it is well-formed.

    Raises `StoreError` for a key that could leave the store's root or that no
    store can hold: absolute, empty, ``.`` or ``..`` components, or a NUL byte.
    """
    for part in key.split("/"):
        if part in ("", ".", "..") or "\0" in part:
            raise StoreError(key, "is not a valid key")
    return key
