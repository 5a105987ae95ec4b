"""How a remote store is asked, and what answers: readers and writers of one kind of service.

They know paths of their service, not keys, and let foreign exceptions through;
`zarrfs.store.remote.fsspec_store` converts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from zarrfs.store.base import Blob, ByteRange, Conditional, Data, Expected, ObjectInfo

_KIB = 1 << 10
_MIB = 1 << 20


class RequestConfig(NamedTuple):
    """How the objects of a remote store are read.

    immutable : the objects never change, so nothing is asked only to see whether they
        did. Default False.
    max_gap : ranges of one object that lie at most so many bytes apart are fetched in
        one request. Default 64 KiB.
    max_request : most bytes fetched in one request, unless one range alone is longer.
        It has to arrive within the timeout of `RetryConfig` where the service does not
        stream. Default 8 MiB.
    max_unranged : an object of which a part is wanted is fetched whole from a server
        that ignores ranges if it has at most so many bytes. Default 256 MiB.
    concurrency : requests of the store in flight at first, and objects or parts of one that are
        uploaded at once. More of them later are new connections, each a round trip more.
        Default 64.
    most_concurrency : requests in flight where more of them are faster. Default 128.
    timeout_s : a request that receives nothing for so many seconds is cancelled.
        Default 20.
    slowest : bytes a second that a reply must bring after its first ``timeout_s`` seconds,
        on average; one that is slower is cancelled. Default 1 KiB.
    forbidden_is_missing : read "forbidden" as "missing": what S3 says of a missing key
        to those who may not list the bucket. Default False, because the chunks of an
        array that one may not read would then read as fill values.
    """

    immutable: bool = False
    max_gap: int = 64 * _KIB
    max_request: int = 8 * _MIB
    max_unranged: int = 256 * _MIB
    concurrency: int = 64
    most_concurrency: int = 128
    timeout_s: float = 20.0
    slowest: float = 1.0 * _KIB
    forbidden_is_missing: bool = False

    @property
    def smallest_part(self) -> int:
        """Bytes of a body that must be told of as they come, for a slow reply to show progress."""
        return max(1, int(self.slowest * self.timeout_s / 2))


class ObjectChanged(Exception):
    """The object changed between two requests for it."""


class NotAsExpected(Exception):
    """The object is not in the state that a write expected."""


class ListingUnsupported(Exception):
    """The service cannot list."""


class ServiceError(Exception):
    """The service refused a request.

    status : of HTTP; None where the service was not reached.
    code : by which S3 and others tell refusals apart; None where there is none.
    """

    def __init__(self, message: str, status: int | None, code: str | None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ServiceMissing(ServiceError, FileNotFoundError):
    """There is no such object, or no such bucket."""


class TooLarge(Exception):
    """``size`` bytes (None: not known) are more than ``limit``."""

    def __init__(self, size: int | None, limit: int, why: str = "") -> None:
        much = "more bytes" if size is None else f"{size} bytes, more"
        super().__init__(f"has {much} than the {limit} allowed{why}")


class BadReply(Exception):
    """The service sends what cannot be used, and would again."""


class BrokenReply(Exception):
    """The service sent less or more than it announced; asked again, it may not."""


class Reader(Protocol):
    """Reads objects of one service by path. Missing: `FileNotFoundError` or a kin of it."""

    def info(self, path: str) -> ObjectInfo: ...

    def get(self, path: str, limit: int) -> Blob:
        """Raises `TooLarge` before memory is taken, `ObjectChanged`, `BadReply`, `BrokenReply`."""
        ...

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[Blob]:
        """Raises as `get`; `TooLarge` where the server ignores ranges."""
        ...

    def list_dir(self, path: str) -> Iterator[str]:
        """Names, those of directories with a ``/``; raises `ListingUnsupported`."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Writes objects of one service by path; see `zarrfs.store.base.Store`."""

    @property
    def conditional(self) -> Conditional: ...

    def put(self, path: str, parts: Sequence[Data], expected: Expected) -> ObjectInfo:
        """Atomic. Raises `NotAsExpected`, also where that is the doing of this very put."""
        ...

    def delete(self, path: str, expected: Expected) -> None:
        """Raises `NotAsExpected`; not where the object is missing."""
        ...
