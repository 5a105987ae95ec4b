"""TIFF and BigTIFF, read by tifffile, which knows how programs spread arrays over pages."""

from __future__ import annotations

import logging

from zarrfs.format.text_forms.data_types import data_type_json
from zarrfs.library.headers.header import Header, HeaderError

MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_tiff(path: str) -> Header:
    """Shape and type of the first series of pages. Raises HeaderError."""
    try:
        import tifffile  # noqa: PLC0415
    except ImportError:
        raise HeaderError("TIFF needs an optional package: install zarrfs[tiff]") from None
    # It logs what it finds wrong; what matters is raised.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    try:
        with tifffile.TiffFile(path) as file:
            series = file.series[0]
            if series.dtype is None:
                raise HeaderError("the TIFF file does not say the type of its elements")
            return Header(tuple(map(int, series.shape)), data_type_json(series.dtype))
    except HeaderError:
        raise
    except OSError as error:
        raise HeaderError(f"TIFF: {error.strerror or error}") from error
    except Exception as error:  # whatever a damaged file leads to
        raise HeaderError(f"TIFF: {' '.join(str(error).split())[:200]}") from error
