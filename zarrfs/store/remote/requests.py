"""Requests to a remote store: their settings, and the readers and writers of one kind of service.

Readers and writers know paths of their service, not keys. They pass on foreign exceptions, which
`zarrfs.store.remote.fsspec_store` converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from zarrfs.store.base import Blob, ByteRange, Data, Expected, ObjectInfo
from zarrfs.store.redact import Redactor

_KIB = 1 << 10
_MIB = 1 << 20


class RequestConfig(NamedTuple):
    """How the objects of a remote store are read.

    immutable : whether objects never change, so that no request is needed to check for a change.
        Default False.
    max_gap : ranges of one object are fetched in one request if at most so many bytes lie between
        them. Default 64 KiB.
    max_request : most bytes fetched in one request, unless a single range is longer. The reply has
        to arrive within the timeout of `RetryConfig` if the service does not stream. Default 8 MiB.
    max_unranged : most bytes of an object that is fetched whole for a part of it, from a server
        that ignores ranges. Default 256 MiB.
    concurrency : most requests in flight for operations that send several, and objects or parts of
        one object uploaded at once. Each takes a thread and a connection. Default 64.
    timeout_s : seconds after which a request that receives nothing is cancelled. Default 20.
    slowest : bytes per second that a reply must bring on average after its first ``timeout_s``
        seconds; a slower reply is cancelled. Default 1 KiB.
    redact : removes secrets from texts; a store sets it to what knows its own secrets.
    """

    immutable: bool = False
    max_gap: int = 64 * _KIB
    max_request: int = 8 * _MIB
    max_unranged: int = 256 * _MIB
    concurrency: int = 64
    timeout_s: float = 20.0
    slowest: float = 1.0 * _KIB
    redact: Callable[[str], str] = Redactor({})

    def state(self, info: ObjectInfo) -> ObjectInfo:
        """``info`` with the same state in each reply, if objects never change.

        Some services describe one object by another ETag in each reply.
        """
        return info._replace(generation=("unchanging", info.size)) if self.immutable else info

    @property
    def smallest_part(self) -> int:
        """Bytes of a body after which its progress must be reported.

        A slow reply would otherwise seem to make no progress.
        """
        return max(1, int(self.slowest * self.timeout_s / 2))


class ObjectChanged(Exception):
    """The object changed between two requests for it."""


class NotAsExpected(Exception):
    """The object is not in the state that a write expected."""


class ListingUnsupported(Exception):
    """The service cannot list."""


class ServiceError(Exception):
    """The service refused a request.

    status : of HTTP; None if the service was not reached.
    code : with which S3 and other services distinguish refusals; None if there is none.
    """

    def __init__(self, message: str, status: int | None, code: str | None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ServiceMissing(ServiceError, FileNotFoundError):
    """There is no such object, or no such bucket."""


class TooLarge(Exception):
    """``size`` bytes (None: unknown) are more than ``limit``."""

    def __init__(self, size: int | None, limit: int, why: str = "") -> None:
        much = "more bytes" if size is None else f"{size} bytes, more"
        super().__init__(f"has {much} than the {limit} allowed{why}")


class BadReply(Exception):
    """The service sent an unusable reply, and would send it again."""


class BrokenReply(Exception):
    """The service sent fewer or more bytes than it announced; a retry may succeed."""


class Reader(Protocol):
    """Reads objects of one service by path. Raises `FileNotFoundError` for a missing object."""

    def info(self, path: str) -> ObjectInfo: ...

    def get(self, path: str, limit: int) -> Blob:
        """Raises `TooLarge` before memory is taken, `ObjectChanged`, `BadReply`, `BrokenReply`."""
        ...

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        """Raises as `get`; `TooLarge` if the server ignores ranges."""
        ...

    def list_dir(self, path: str) -> Iterator[str]:
        """Names, those of directories with a ``/`` at the end; raises `ListingUnsupported`."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Writes objects of one service by path; see `zarrfs.store.base.Store`."""

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        """Atomic. Raises `NotAsExpected`, also if an earlier attempt of this put is the cause."""
        ...

    def delete(self, path: str, expected: Expected) -> None:
        """Raises `NotAsExpected`, but not if the object is missing."""
        ...
