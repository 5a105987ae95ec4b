"""Private names of other packages that zarrfs uses, each with its check and its fallback.

A new version of a package may remove or change such a name. Each use calls `Private.there`, or an
equivalent check, and takes the fallback if the name is missing. For the locked versions the tests
fail first. Names that are not listed here must be public.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Private(NamedTuple):
    """One private name.

    module : module of the other package, which need not be installed.
    path : from the module to the name, separated by dots.
    used_in : the module of zarrfs that uses it.
    purpose : what zarrfs uses it for and no public name offers.
    otherwise : what zarrfs does if the name is missing.
    check : whether the object at ``path`` is as expected; None: its presence suffices.
    """

    module: str
    path: str
    used_in: str
    purpose: str
    otherwise: str
    check: Callable[[Any], bool] | None = None

    @property
    def there(self) -> bool:
        """Whether the installed package has the name. False if the package is not installed."""
        return _is_there(self)


@cache
def _is_there(private: Private) -> bool:
    try:
        found: Any = importlib.import_module(private.module)
    except ImportError:
        return False
    for name in private.path.split("."):
        if (found := getattr(found, name, None)) is None:
            return False
    return private.check is None or private.check(found)


def _sets_session(method: Any) -> bool:
    """Whether ``__init__`` of fsspec's HTTP file system sets the attribute that zarrfs reads."""
    return "_session" in method.__code__.co_names


def _holds(module: str, text: bytes) -> bool:
    """Whether the file of a compiled module holds a text, such as the name of a function."""
    file = importlib.import_module(module).__file__
    return file is not None and text in Path(file).read_bytes()


PYFUSE3_WAIT = Private(
    "pyfuse3",
    "_wait_fuse_readable",
    "zarrfs.fuse.request_wait",
    "to look for the next request without a turn of the event loop",
    "pyfuse3 waits in its own way, which makes small reads slower",
)
PYFUSE3_LOG = Private(
    "pyfuse3",
    "__name__",
    "zarrfs.fuse.session",
    "the text of a log record, which says that no program waits for an answer any more",
    "such records are in the log of the mount",
    lambda _: _holds("pyfuse3", b"fuse_reply"),
)
S3FS_CALL = Private(
    "s3fs.core",
    "S3FileSystem._call_s3",
    "zarrfs.store.remote.s3.s3_service",
    "the ETag beside the bytes, and pages of a listing",
    "S3 is read as any other file system of fsspec, and not written to",
)
S3FS_ARGUMENTS = Private(
    "s3fs.core",
    "S3FileSystem._get_s3_method_kwargs",
    "zarrfs.store.remote.s3.s3_service",
    "conditional writes with the options that s3fs got",
    "S3 is read as any other file system of fsspec, and not written to",
)
FSSPEC_SESSION = Private(
    "fsspec.implementations.http",
    "HTTPFileSystem.__init__",
    "zarrfs.store.remote.http_service",
    "to close connections when the store is closed",
    "they are closed when the file system is collected",
    _sets_session,
)
FSSPEC_CAT_FILE = Private(
    "fsspec.asyn",
    "AsyncFileSystem._cat_file",
    "zarrfs.store.remote.plain_reader",
    "several ranges at once, each with a time-out",
    "ranges are fetched one after the other",
)
DEFLATE_LIBRARY = Private(
    "deflate._deflate",
    "__file__",
    "zarrfs.format.codecs.native",
    "to decode gzip and zlib into memory that zarrfs has allocated",
    "the package's own function decodes, and what it returns is copied",
    lambda _: _holds("deflate._deflate", b"libdeflate_gzip_decompress_ex"),
)
ZFPY_DECOMPRESS = Private(
    "zfpy",
    "_decompress",
    "zarrfs.format.codecs.zfp_stream",
    "to decode streams without a header, of which only the metadata say what they hold",
    "arrays of such streams are not served, and say so",
)

PRIVATE = (
    PYFUSE3_WAIT,
    PYFUSE3_LOG,
    S3FS_CALL,
    S3FS_ARGUMENTS,
    FSSPEC_SESSION,
    FSSPEC_CAT_FILE,
    DEFLATE_LIBRARY,
    ZFPY_DECOMPRESS,
)
