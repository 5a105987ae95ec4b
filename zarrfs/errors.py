"""The single hierarchy of errors that zarrfs raises on purpose.

Every layer converts a foreign exception into one of these where the exception enters, with
``from``. Only ``zarrfs.fuse.errnos`` maps these classes to errno values.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from zarrfs.bounds import shown

_P = ParamSpec("_P")
_T = TypeVar("_T")


class ZarrfsError(Exception):
    """Base class. ``str(error)`` is one line that can be shown to a user."""

    def without_frames(self) -> Self:
        """This error without the frames of its traceback, for an error that is kept.

        The tracebacks of an error and of its causes keep frames alive, and the frames keep their
        local variables alive. This removes all these tracebacks.
        """
        chain: list[BaseException | None] = [self]
        seen: set[BaseException] = set()
        while chain:
            error = chain.pop()
            if error is not None and error not in seen:
                seen.add(error)
                error.__traceback__ = None
                chain += [error.__cause__, error.__context__]
        return self


def to_install(extra: str) -> str:
    """How to install the packages of an extra, for a message. No package index has zarrfs."""
    return f"in a checkout of zarrfs: pip install '.[{extra}]'"


# Raised by code that met data it was not written for; the text is about the code.
_OF_CODE = (
    *(AssertionError, AttributeError, BufferError, LookupError, NameError, StopIteration),
    *(SystemError, ZeroDivisionError, struct.error),
)
_PYTHON = re.compile(
    r"NoneType|<class |object (has no|is not|of type)|has no attribute|not (callable|iterable)|"
    r"invalid literal for|values to unpack|cannot reshape array|operands could not be|index out of|"
    r"buffer (size|is smaller)|positional argument|unsupported operand|must be (str|bytes|int)\b|"
    r"not supported between|[Pp]ython int|C (int|long)|expected (str|bytes|int|a )|not understood$|"
    r"cannot be interpreted as|inhomogeneous shape|No NumPy equivalent|0x[0-9a-f]{8,}>"
)
_UNKNOWN_FORM = "it is damaged, or has a form that zarrfs does not know"
_ARGUMENT = re.compile(r"unexpected keyword argument '?([^']+)'?")
_MISSING_ARGUMENTS = re.compile(r"missing \d+ required [\w-]+ arguments?: (.+)")


def reason_of(error: BaseException) -> str:
    """The reason that an exception of another package gives, in one line for users.

    A text about Python's objects and types, which tells users nothing, is replaced.
    """
    text = " ".join(str(error).split())
    if (found := _ARGUMENT.search(text)) is not None:
        return f"it has an unknown member {found[1]!r}"
    if (found := _MISSING_ARGUMENTS.search(text)) is not None:
        return f"it lacks {found[1]}"
    if isinstance(error, MemoryError):
        return "it decodes to more than the memory that it may take"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"its text is not {error.encoding.upper()}"
    if isinstance(error, KeyError) and len(error.args) == 1:
        said = " ".join(str(error.args[0]).split())
        # A library's sentence, and not the name of something that is missing.
        return said if said.count(" ") > 2 else _UNKNOWN_FORM
    if not text or isinstance(error, _OF_CODE) or _PYTHON.search(text):
        return _UNKNOWN_FORM
    return text


def unexpected(error: Exception) -> str:
    """Words for an exception that no part of the program expects."""
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "no thread can be started: the limit on processes is reached (ulimit -u, pids.max)"
    return f"unexpected {type(error).__name__}: {error}"


def is_panic(error: BaseException) -> bool:
    """Whether code in Rust panicked; the class of such an error cannot be imported.

    It does not derive from Exception, although the data of one chunk may be the cause.
    """
    return type(error).__name__ == "PanicException"


def without_panics(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """``function``, which raises RuntimeError in place of a panic."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if is_panic(error):
                raise RuntimeError(str(error)) from error
            raise

    return call


class LocatedError(ZarrfsError):
    """An error of something that ``key`` names, because of ``reason``."""

    def __init__(self, key: str, reason: str) -> None:
        # A quoted document must not fill logs and terminals.
        reason = shown(reason)
        super().__init__(f"{key or '/'}: {reason}")
        self.key = key
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.reason)


# --- configuration and start-up -------------------------------------------------


class UsageError(ZarrfsError):
    """An option or an argument is wrong. Nothing was started."""


class MountError(ZarrfsError):
    """The mount point cannot be used, or the kernel refused the mount."""


class JournalError(ZarrfsError):
    """The recovery journal cannot be written or read. The text names its directory."""


# --- what a store says ----------------------------------------------------------


class StoreError(LocatedError):
    """A store operation failed. ``key`` names the object, relative to the store's root."""


class StoreUnavailable(StoreError):
    """A failure that may pass: the same call can succeed later.

    retry_after_s : seconds after which the store asks for the next attempt; 0: it does not say.
    """

    def __init__(self, key: str, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(key, reason)
        self.retry_after_s = retry_after_s


class StoreTimeout(StoreError):
    """The deadline of a store operation passed, retries included."""


class StoreAccessDenied(StoreError):
    """The store refused access to an object."""


class StoreReadOnly(StoreError):
    """The store cannot be written to by any user."""


class StoreFull(StoreError):
    """The store has no room for an object."""


class StoreQuotaExceeded(StoreFull):
    """The writer has used up its quota in the store."""


class StoreConflict(StoreError):
    """An object is not in the state that a write expected, or changes during every read."""


class StoreChanged(StoreError):
    """Another program has changed an array in a way that changes kept apart do not fit."""


class StoreTooLarge(StoreError):
    """An object has more bytes than the caller accepts."""


class StoreListingUnsupported(StoreError):
    """The store cannot list (for example plain HTTP)."""


# --- what the data say ----------------------------------------------------------


class FormatError(ZarrfsError):
    """Metadata or data do not follow their specification."""


class MetadataError(LocatedError, FormatError):
    """A metadata document is malformed. ``key`` names it, ``reason`` says why."""


class UnsupportedError(MetadataError):
    """A well-formed document asks for something that zarrfs does not serve."""


class NodeNotFound(ZarrfsError):
    """There is no Zarr array or group at the requested path."""


class AlreadyExists(ZarrfsError):
    """The place of a new array is taken, or holds another array than the requested one."""


class DecodeError(FormatError):
    """Encoded bytes do not decode to the chunk that the metadata promise."""


class TooLongToDecode(DecodeError):
    """An encoded chunk is longer than any chunk that would be fetched."""


class ChunkError(LocatedError):
    """A chunk could not be served. ``key`` is its store key, ``reason`` the cause."""

    @classmethod
    def of(cls, key: str, failure: Exception) -> ChunkError:
        """The error of a chunk that could not be served because of ``failure``."""
        return cls(key, str(failure) if isinstance(failure, ZarrfsError) else unexpected(failure))


class UncountedError(ChunkError):
    """A reply could not be made although no chunk had an error, so no load has counted it."""


class MissingChunkError(ChunkError):
    """A chunk is not stored, and the configuration treats missing chunks as errors."""


class EncodingChanged(ChunkError):
    """Another program has changed the array: its chunks, or changes to be stored, do not fit."""


class BudgetExceeded(ZarrfsError):
    """One operation alone would need more memory than the configured budget."""


# --- what a file system answers -------------------------------------------------


class EntryNotFound(ZarrfsError):
    """The directory has no entry of that name."""


class ObjectNotFound(EntryNotFound):
    """A stored object does not exist, and may be made at any time."""


class NotADirectory(ZarrfsError):
    """A directory operation was requested on a file."""


class IsADirectory(ZarrfsError):
    """A file operation was requested on a directory."""


class ReadOnly(ZarrfsError):
    """A change was requested on a read-only mount."""


class NoSuchAttribute(ZarrfsError):
    """The file has no extended attribute of that name."""


class BadHandle(ZarrfsError):
    """The file handle is not open."""


class NotPermitted(ZarrfsError):
    """The fixed tree of the mount never allows this change."""


class InvalidElement(ZarrfsError):
    """The bytes to be written are no element of the array's data type."""


class FileTooLarge(ZarrfsError):
    """A write reaches beyond the end of a file of fixed size."""


class Unsupported(ZarrfsError):
    """The file system does not have this operation."""
