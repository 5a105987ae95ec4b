"""The store protocol: bytes by key, each with a generation.

A key is a ``/``-separated relative path with no empty, ``.`` or ``..``
component; the empty string names the root and is only valid as a prefix. A
store never follows a key out of its root. All methods block and may be called
from any number of threads at once.

A missing object is ``None``; every other failure is a `zarrfs.errors.StoreError`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from zarrfs.errors import StoreError, StoreTimeout

Generation = tuple[object, ...]
"""Identifies one state of an object: equal generations mean equal bytes.

Local: ``(mtime_ns, inode, size, ctime_ns)``. Remote: whatever of ETag, version and
times the service tells, and the size.
"""

Data: TypeAlias = bytes | bytearray | memoryview
"""Bytes to be stored; C-contiguous."""


class AnyState(enum.Enum):
    """The type of `ANY`."""

    ANY = "any"


ANY: Final = AnyState.ANY
"""Of a write that does not care about the state which the object is in."""

Expected: TypeAlias = Generation | Literal[AnyState.ANY] | None
"""The state that an object must be in; None: it must not exist."""


class Conditional(enum.Enum):
    """Against whom ``expected`` protects a put.

    ALWAYS : the store itself compares and replaces in one step, so against everyone.
    AMONG_OURSELVES : against every zarrfs on the same host, whatever root it was given.
        Others (other programs, other hosts of a network file system) go unnoticed when
        they write between the last look and the replacement, some microseconds.
    CHECKED : the state is looked at just before; of all others, only threads that use
        the same `Store` are kept out in between.
    """

    ALWAYS = "always"
    AMONG_OURSELVES = "among ourselves"
    CHECKED = "checked"


class ByteRange(NamedTuple):
    """``length`` bytes from ``offset``; a negative ``offset`` counts from the end.

    A range that reaches past the object's end is cut there, and one that
    starts before its beginning starts at 0 (as HTTP suffix ranges do).
    """

    offset: int
    length: int


class ObjectInfo(NamedTuple):
    """``size`` in bytes, ``mtime_ns`` since the epoch (None: the store does not tell)."""

    size: int
    mtime_ns: int | None
    generation: Generation


class Blob(NamedTuple):
    """Bytes of an object, and which state of the object they are of.

    ``data`` are the bytes asked for, ``info`` describes the whole object.
    """

    data: bytes | memoryview
    info: ObjectInfo


class Put(NamedTuple):
    """An object to be stored: what `Store.put` takes."""

    key: str
    parts: Sequence[Data]
    expected: Expected


class Store(Protocol):
    """Objects below one root.

    url : what to show a user; never holds credentials.
    local_path : absolute path of the root where the store is a local directory.
    cheap_stat : whether `info` costs microseconds rather than a round trip.
    requests_at_once : how many requests the store likes to have in flight now. A remote one likes
        more for as long as more of them are faster; 1 where there is nothing to wait for but the
        processor and the disk.
    read_only : why nothing can be written, as one line; None where writing is possible.
        Found out anew each time, so a file system may still refuse a single object.
    conditional : against whom ``expected`` protects. May ask the store once.
    trouble : what the store fails with now and is asked again after, as JSON: ``since`` and
        ``time`` of the latest failure, seconds since the epoch, its ``key`` and ``reason``; None
        where all is well, or nothing is asked again.
    """

    @property
    def url(self) -> str: ...

    @property
    def local_path(self) -> str | None: ...

    @property
    def cheap_stat(self) -> bool: ...

    @property
    def requests_at_once(self) -> int: ...

    @property
    def read_only(self) -> str | None: ...

    @property
    def conditional(self) -> Conditional: ...

    @property
    def trouble(self) -> Mapping[str, Any] | None: ...

    def get(self, key: str, *, limit: int) -> Blob | None:
        """The whole object.

        limit : refuse with `StoreTooLarge` an object of more bytes than this,
            before memory is taken for it.
        """
        ...

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        """What `get` returns or raises for each key, in order.

        The store may begin to fetch what comes later while earlier objects are used, and a
        remote one fetches as many at once as make it faster. So all of them may be in memory
        together: ask for no more than there is room for.
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

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        """Replaces or creates the object by the concatenation of ``parts``.

        Atomic: readers, and a writer killed at any instant, leave the old object or the
        new one. Durable once it returns, and so is all that the object needs to be
        found. What is returned describes what was put, even where another writer has
        replaced it since.

        parts : must not change until this returns or raises; a store that gave up
            waiting for an attempt may still read them later.
        expected : the state that the object must be in, as ``info`` or a blob told it.

        Raises `StoreConflict` where it is in another one. A remote store may also
        return where the object already holds exactly these bytes, since that is what a
        put whose answer was lost has left behind.

        After any other error the object is as it was, with two exceptions. A remote put
        that timed out may still arrive: harmless where ``conditional`` is `ALWAYS` and
        ``expected`` not `ANY`, because whatever is put next makes it fail. And a local
        put that fails at the very end (`fsync` of the directory) has replaced the object
        without being sure that this lasts. So put again after an error, and take a
        `StoreConflict` then as what it is after any put: read, merge, put.

        Raises `StoreFull`, `StoreQuotaExceeded`, `StoreReadOnly`, `StoreAccessDenied`
        and `StoreTimeout` as the store tells them apart.
        """
        ...

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        """What `put` returns or raises for each, in order.

        The store may wait for all of them at once until they are durable.
        """
        ...

    def delete(self, key: str, *, expected: Expected) -> None:
        """Removes the object; durable once it returns. One that is missing already is fine.

        Directories that become empty stay. Raises as `put` does.
        """
        ...

    def leftovers(self) -> list[str]:
        """What `remove_leftovers` would remove now."""
        ...

    def remove_leftovers(self) -> list[str]:
        """Removes what killed writers left behind, never what belongs to a live one.

        Returns what was removed, as paths relative to the root. Cheap where there is
        nothing. Only needed to free space: leftovers disturb nobody.
        """
        ...

    def free_space(self) -> tuple[int, int] | None:
        """``(total, free)`` in bytes of what holds the store, where that can be known."""
        ...

    def give_up(self) -> None:
        """Whatever waits for the store fails now, and so does all that is asked later.

        For when there is no more time to wait; a store that is near goes on.
        """
        ...

    def close(self) -> None:
        """Release connections and threads. Idempotent."""
        ...


def get_one_by_one(
    store: Store, keys: Sequence[str], limit: int
) -> Iterator[Blob | StoreError | None]:
    """`Store.get_many` for a store that fetches nothing ahead."""
    for key in keys:
        try:
            yield store.get(key, limit=limit)
        except StoreError as error:
            yield error


def put_one_by_one(store: Store, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
    """`Store.put_many` for a store that waits for each object by itself."""
    results: list[ObjectInfo | StoreError] = []
    for key, parts, expected in puts:
        try:
            results.append(store.put(key, parts, expected=expected))
        except StoreTimeout as error:
            # A store that does not answer would be waited for once for each object.
            left = [StoreTimeout(put.key, error.reason) for put in puts[len(results) + 1 :]]
            return [*results, error.without_frames(), *left]
        except StoreError as error:
            # Lest it keeps this frame, which keeps all that is to be stored.
            results.append(error.without_frames())
    return results


def put_side_by_side(store: Store, puts: Sequence[Put], most: int) -> list[ObjectInfo | StoreError]:
    """`Store.put_many` for a store of which each put is a round trip.

    most : puts under way at once.
    """
    if len(puts) == 1 or most <= 1:
        return put_one_by_one(store, puts)
    silent: list[StoreTimeout] = []

    def put(one: Put) -> ObjectInfo | StoreError:
        # A store that does not answer would be waited for again and again.
        if silent:
            return StoreTimeout(one.key, silent[0].reason)
        try:
            return store.put(one.key, one.parts, expected=one.expected)
        except StoreTimeout as error:
            silent.append(error)
            return error.without_frames()
        except StoreError as error:
            # Lest it keeps this frame, which keeps all that is to be stored.
            return error.without_frames()

    with ThreadPoolExecutor(min(most, len(puts)), "puts") as pool:
        return list(pool.map(put, puts))


def check_key(key: str) -> str:
    """``key`` itself if it is well-formed.

    Raises `StoreError` for a key that could leave the store's root or that no
    store can hold: absolute, empty, ``.`` or ``..`` components, or a NUL byte.
    """
    enclosed = f"/{key}/"
    if "//" in enclosed or "/./" in enclosed or "/../" in enclosed or "\0" in key:
        raise StoreError(key, "is not a valid key")
    return key
