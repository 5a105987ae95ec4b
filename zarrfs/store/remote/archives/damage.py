"""What the readers of archives raise where one is damaged, as an error that lasts."""

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
from zarrfs.store.remote.requests import BadReply

_DAMAGED = (
    EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
    struct.error, UnicodeDecodeError, RecursionError, OverflowError, bounds.OutOfBoundsError,
)  # fmt: skip


@contextmanager
def lasting() -> Iterator[None]:
    """Raises `BadReply` in place of these, since asking again would bring the same."""
    try:
        yield
    except _DAMAGED as error:
        raise BadReply(f"the archive: {str(error) or type(error).__name__}") from error
    except OSError as error:
        # That of bz2 for bytes that are none of its own.
        if type(error) is OSError and error.errno is None:
            raise BadReply(f"the archive: {error}") from error
        raise
