"""Private names of other packages that zarrfs uses.

A new version of a package may remove or change such a name. Each use asks `Private.there`, or does
an equivalent check, and takes a fallback if the name is missing. For the locked versions the tests
fail first. Names that are not listed here must be public.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, NamedTuple


class Private(NamedTuple):
    """One private name.

    module : module of the other package, which need not be installed.
    path : from the module to the name, separated by dots.
    """

    module: str
    path: str

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
    return True


# To look for the next request without a turn of the event loop. Otherwise pyfuse3 waits in its own
# way, which makes small reads slower.
PYFUSE3_WAIT = Private("pyfuse3", "_wait_fuse_readable")
# The ETag beside the bytes, pages of a listing, and conditional writes with the options that s3fs
# got. Otherwise S3 is read as any other file system of fsspec, and not written to.
S3FS_CALL = Private("s3fs.core", "S3FileSystem._call_s3")
S3FS_ARGUMENTS = Private("s3fs.core", "S3FileSystem._get_s3_method_kwargs")
# Several ranges at once, each with a time-out. Otherwise they are fetched one after the other.
FSSPEC_CAT_FILE = Private("fsspec.asyn", "AsyncFileSystem._cat_file")
# To decode gzip and zlib into memory that zarrfs has allocated. Otherwise the package's own
# function decodes, and its result is copied.
DEFLATE_LIBRARY = Private("deflate._deflate", "__file__")
# To decode streams without a header, of which only the metadata say what they hold. Otherwise
# arrays of such streams are not served, and say so.
ZFPY_DECOMPRESS = Private("zfpy", "_decompress")

PRIVATE = tuple(name for name in list(globals().values()) if isinstance(name, Private))
