"""The store protocol: bytes by key, each object with a generation.

A key is a relative path with ``/`` between its components. No component is empty, ``.`` or
``..``. The empty string names the root and is valid only as a prefix. A store never follows a key
out of its root. All methods block, and any number of threads may call them at once.

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

Local: ``(mtime_ns, inode, size, ctime_ns)``. Remote: the ETag, version and times that the service
reports, and the size.
"""

Data: TypeAlias = bytes | bytearray | memoryview
"""Bytes to be stored; C-contiguous."""


class AnyState(enum.Enum):
    """The type of `ANY`."""

    ANY = "any"


ANY: Final = AnyState.ANY
"""For a write that accepts any state of the object."""

Expected: TypeAlias = Generation | Literal[AnyState.ANY] | None
"""The state that an object must be in; None: it must not exist."""


class ByteRange(NamedTuple):
    """``length`` bytes from ``offset``; a negative ``offset`` counts from the end.

    A range that reaches past the object's end is cut there. A range that starts before the object
    starts at 0 (as HTTP suffix ranges do).
    """

    offset: int
    length: int


class ObjectInfo(NamedTuple):
    """``size`` in bytes, ``mtime_ns`` since the epoch (None: the store does not report it)."""

    size: int
    mtime_ns: int | None
    generation: Generation


class Blob(NamedTuple):
    """Bytes of an object, and the state of the object that they belong to.

    ``data`` are the requested bytes, ``info`` describes the whole object. ``whole`` are all bytes
    of the object, if the service ignores ranges and sent them in place of ``data``.
    """

    data: bytes | memoryview
    info: ObjectInfo
    whole: bytes | memoryview | None = None


class Put(NamedTuple):
    """An object to be stored, with the arguments of `Store.put`."""

    key: str
    parts: Sequence[Data]
    expected: Expected


class StoreTraits(NamedTuple):
    """The facts about a store by which others choose how to use it.

    near : whether a request costs microseconds, as on a disk, rather than a round trip.
    in_flight : number of requests that the store should have in flight. 1 if a request waits only
        for the processor and the disk.
    immutable : whether no object ever appears, changes or disappears.
    """

    near: bool
    in_flight: int = 1
    immutable: bool = False


class Store(Protocol):
    """Objects below one root.

    A store that derives from this class inherits what needs no way of its own: one object after
    the other, and no files that killed writers left behind.

    url : the name shown to users; never holds credentials.
    local_path : absolute path of the root if the store is a local directory.
    traits : determined anew each time.
    read_only : the reason why nothing can be written, in one line; None if writing is possible.
        Determined anew each time, so a file system may still refuse a single object.
    trouble : the failure that the store is retrying after, as JSON: ``since`` and ``time`` of the
        latest failure in seconds since the epoch, its ``key`` and ``reason``. None if nothing
        fails, or the store does not retry.
    """

    @property
    def url(self) -> str: ...

    @property
    def local_path(self) -> str | None:
        return None

    @property
    def traits(self) -> StoreTraits: ...

    @property
    def read_only(self) -> str | None: ...

    @property
    def trouble(self) -> Mapping[str, Any] | None:
        return None

    def get(self, key: str, *, limit: int) -> Blob | None:
        """The whole object.

        limit : most bytes of the object. A larger one raises `StoreTooLarge` before the store
            takes memory for it.
        """
        ...

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        """For each key, in order, the object as `get` returns it or the error that `get` raises.

        The store may fetch later objects while the caller uses earlier ones. A remote store
        fetches as many at once as make it faster. So all of them may be in memory together: ask
        only for as many as there is room for.
        """
        for key in keys:
            try:
                yield self.get(key, limit=limit)
            except StoreError as error:
                yield error

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        """Several parts of one object, all of the same generation, in the order of ``ranges``.

        The store decides how many requests that takes. Raises `StoreConflict` if the object keeps
        changing between them.
        """
        ...

    def info(self, key: str) -> ObjectInfo | None:
        """Size and generation, without the bytes; None if there is no such object."""
        ...

    def may_exist(self, keys: Sequence[str]) -> Sequence[str]:
        """Those of the keys, in order, that are not certain to name no object.

        All of them, unless the store knows that by few requests.
        """
        return keys

    def real_key(self, key: str) -> str:
        """The one name of a directory that has several, because links lead to it.

        Its absolute path if it lies outside the store.
        """
        return key

    def list_dir(self, prefix: str) -> Iterator[str]:
        """The names directly below ``prefix``; a name that has children ends in ``/``.

        Streams: the first names come before the last are known. Yields nothing if ``prefix`` does
        not exist. Raises `StoreListingUnsupported` if the store cannot list.
        """
        ...

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        """Each object below ``prefix``, at any depth: its key relative to that, and its state.

        Streams. None if the store lists one directory at a time only. Raises as `list_dir`.
        """
        return None

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        """Create the object, or replace it, with the concatenation of ``parts``.

        Atomic: a reader sees the old object or the new one, also after a writer was killed at any
        instant. Durable once it returns, with everything that is needed to find the object. The
        result describes the object that was put, even if another writer has replaced it since.

        parts : must not change until this returns or raises. A store that abandoned an attempt may
            still read them later.
        expected : the state that the object must be in, from ``info`` or a blob. A service that
            compares and replaces in one step, as S3 does, protects against all writers. A local
            store protects against every zarrfs on the same host, whichever root each one has.
            Others check the state just before the replacement, under a lock of this `Store`.

        Raises `StoreConflict` if the object is in another state. A remote store may nevertheless
        return if the object already holds exactly these bytes: a put whose reply was lost leaves
        the object so.

        After any other error the object is unchanged, with two exceptions. First, a remote put
        that timed out may still arrive. This is harmless if the service compares and ``expected``
        is not `ANY`, because the next put makes the late one fail. Second, a local
        put that fails at its last step (`fsync` of the directory) has replaced the object, but
        possibly not durably. So put again after an error, and treat a `StoreConflict` then like
        one of any put: read, merge, put.

        Raises `StoreFull`, `StoreQuotaExceeded`, `StoreReadOnly`, `StoreAccessDenied` and
        `StoreTimeout` as far as the store distinguishes them.
        """
        ...

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        """For each put, in order, the result of `put` or the error that it raises.

        The store may wait for all of them together until they are durable. Otherwise, as many puts
        are in flight at once as its traits say.
        """
        return _put_all(self, puts)

    def delete(self, key: str, *, expected: Expected) -> None:
        """Remove the object; durable once it returns. A missing object is no error.

        Directories that become empty stay. Raises as `put` does.
        """
        ...

    def leftovers(self, *, remove: bool) -> list[str]:
        """Find or remove the files that killed writers left behind, never those of a running one.

        Returns their paths, relative to the root. Cheap if there are none. They are removed only to
        free space: leftovers disturb no reader and no writer.
        """
        return []

    def free_space(self) -> tuple[int, int] | None:
        """``(total, free)`` in bytes of the medium that holds the store; None if unknown."""
        return None

    def give_up(self) -> None:
        """Fail all calls that wait for the store, and all later calls.

        For a process that has no time left to wait. A local store continues to work.
        """
        return

    def close(self) -> None:
        """Release connections and threads. Idempotent."""
        ...


def _put_all(store: Store, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
    silent: list[StoreTimeout] = []

    def put(one: Put) -> ObjectInfo | StoreError:
        # Each further put would wait as long for a store that does not answer.
        if silent:
            return StoreTimeout(one.key, silent[0].reason)
        try:
            return store.put(one.key, one.parts, expected=one.expected)
        except StoreError as error:
            if isinstance(error, StoreTimeout):
                silent.append(error)
            # Without its frames, which would keep all data that are to be stored.
            return error.without_frames()

    most = min(store.traits.in_flight, len(puts))
    if most <= 1:
        return list(map(put, puts))
    with ThreadPoolExecutor(most, "puts") as pool:
        return list(pool.map(put, puts))
