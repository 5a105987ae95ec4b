"""Converts the exceptions that readers of a damaged archive raise into a lasting error."""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs import bounds
from zarrfs.errors import reason_of
from zarrfs.store.remote.requests import BadReply

_DAMAGED = (
    EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
    struct.error, UnicodeDecodeError, RecursionError, OverflowError, bounds.OutOfBoundsError,
)  # fmt: skip


@contextmanager
def lasting() -> Iterator[None]:
    """Raise `BadReply` in place of these exceptions, since a retry would get the same bytes."""
    try:
        yield
    except _DAMAGED as error:
        raise BadReply(f"the archive: {reason_of(error)}") from error
    except OSError as error:
        # bz2 raises it for bytes that it did not write.
        if type(error) is OSError and error.errno is None:
            raise BadReply(f"the archive: {error}") from error
        raise
