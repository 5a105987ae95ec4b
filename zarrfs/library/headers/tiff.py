"""TIFF and BigTIFF, read by tifffile, which knows how programs spread arrays over pages."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

from zarrfs.errors import DecodeError, reason_of, to_install
from zarrfs.isolation.decoders import isolated
from zarrfs.library.headers.header import LARGEST_HEADER, Header, HeaderError

MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_MEMORY = 1 << 30


def read_tiff(path: str) -> Header:
    """Shape and type of the first series of pages. Raises HeaderError."""
    if find_spec("tifffile") is None:
        raise HeaderError(f"TIFF needs an optional package, {to_install('tiff')}")
    try:
        found = isolated("zarrfs.library.headers.tiff_file").decode(
            {"path": os.path.abspath(path)}, b"", size=LARGEST_HEADER, memory=_MEMORY, exact=False
        )
    except DecodeError as error:
        raise HeaderError(f"TIFF: {reason_of(error)[:200]}") from error
    shape, data_type = json.loads(found)
    return Header(tuple(shape), data_type)
