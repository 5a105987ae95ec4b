"""The one hierarchy of errors that zarrfs raises on purpose.

Every layer converts foreign exceptions into one of these where they enter,
with ``from``. Which errno a class becomes is decided in ``zarrfs.fuse.errnos``
and nowhere else.
"""

from __future__ import annotations

from typing import Self

from zarrfs.bounds import shown


class ZarrfsError(Exception):
    """Base class: ``str(error)`` is one line fit to be shown to a user."""

    def without_frames(self) -> Self:
        """This error, to be kept: it lets go of what was in use where it was raised.

        Its traceback, and those of its causes, keep frames, and these all that they know.
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


# --- configuration and start-up -------------------------------------------------


class UsageError(ZarrfsError):
    """An option or an argument is wrong; nothing was started."""


class MountError(ZarrfsError):
    """The mount point cannot be used or the kernel refused the mount."""


class JournalError(ZarrfsError):
    """The recovery journal cannot be written or read. The text names the place."""


# --- what a store says ----------------------------------------------------------


class StoreError(ZarrfsError):
    """A store could not answer. ``key`` names the object, relative to the store's root."""

    def __init__(self, key: str, reason: str) -> None:
        reason = shown(reason)
        super().__init__(f"{key or '/'}: {reason}")
        self.key = key
        self.reason = reason


class StoreUnavailable(StoreError):
    """A failure that may pass: the same call can succeed later."""


class StoreTimeout(StoreError):
    """The deadline of a store operation passed, retries included."""


class StoreAccessDenied(StoreError):
    """The store refused access to an object."""


class StoreReadOnly(StoreError):
    """The store cannot be written to, whoever asks."""


class StoreFull(StoreError):
    """The store has no room for an object."""


class StoreQuotaExceeded(StoreFull):
    """The writer has used up its share of the store."""


class StoreConflict(StoreError):
    """An object is not in the state that a write expected, or never rests while it is read."""


class StoreTooLarge(StoreError):
    """An object has more bytes than whoever asked for it takes."""


class StoreListingUnsupported(StoreError):
    """The store cannot list (for example plain HTTP)."""


# --- what the data says ---------------------------------------------------------


class FormatError(ZarrfsError):
    """Metadata or data do not follow their specification."""


class MetadataError(FormatError):
    """A metadata document is malformed. ``document`` names it, ``reason`` says why."""

    def __init__(self, document: str, reason: str) -> None:
        # A document that is quoted must not fill logs and terminals with itself.
        reason = shown(reason)
        super().__init__(f"{document}: {reason}")
        self.document = document
        self.reason = reason


class UnsupportedError(MetadataError):
    """A well-formed document asks for something that zarrfs does not serve."""


class NodeNotFound(ZarrfsError):
    """No Zarr array or group where one was asked for."""


class AlreadyExists(ZarrfsError):
    """Something is where an array was to be created, or another one than was asked for."""


class DecodeError(FormatError):
    """Encoded bytes do not decode to what the metadata promises."""


class ChunkError(ZarrfsError):
    """A chunk could not be served. ``key`` is its store key, ``reason`` the cause."""

    def __init__(self, key: str, reason: str) -> None:
        reason = shown(reason)
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class MissingChunkError(ChunkError):
    """A chunk is not stored, and missing chunks are configured to be errors."""


class BudgetExceeded(ZarrfsError):
    """One operation alone would need more memory than the configured budget."""


# --- what a file system says ----------------------------------------------------


class FileSystemError(ZarrfsError):
    """Base of the answers a file system gives to a wrong request."""


class EntryNotFound(FileSystemError):
    """No such name in this directory."""


class NotADirectory(FileSystemError):
    """A directory operation on a file."""


class IsADirectory(FileSystemError):
    """A file operation on a directory."""


class ReadOnly(FileSystemError):
    """A change was asked of a read-only mount."""


class PermissionDenied(FileSystemError):
    """The caller lacks the permission."""


class NoSuchAttribute(FileSystemError):
    """No extended attribute of that name."""


class BadHandle(FileSystemError):
    """A file handle that is not open."""


class NotPermitted(FileSystemError):
    """A change that the fixed tree never allows."""


class InvalidElement(FileSystemError):
    """Bytes to be written that are no element of the array's data type."""


class FileTooLarge(FileSystemError):
    """A write beyond the end of a file of fixed size."""


class Unsupported(FileSystemError):
    """An operation this file system does not have."""
