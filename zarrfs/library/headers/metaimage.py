"""MetaImage: https://docs.itk.org/en/latest/learn/metaio.html."""

from __future__ import annotations

import numpy as np

from zarrfs.library.headers.header import (
    Header,
    HeaderError,
    data_type,
    fields,
    integers,
    read_start,
)
from zarrfs.views.headers.formats.metaimage import TYPES

_TYPES = {
    **{name.lower(): np.dtype(code).name for code, name in TYPES.items() if code != "b1"},
    "met_long_long": "int64",
    "met_ulong_long": "uint64",
}
_LAST = b"ElementDataFile"


def read_metaimage(path: str) -> Header:
    """Channels, where there are several, are the last axis. Raises HeaderError."""
    start = read_start(path)
    if _LAST not in start:
        raise HeaderError("there is no ElementDataFile")
    header = fields(start.partition(_LAST)[0].decode("utf-8", "replace"), "=")
    sizes = integers("DimSize", header.get("dimsize", ""))
    if integers("NDims", header.get("ndims", "")) != (len(sizes),):
        raise HeaderError(f"DimSize has {len(sizes)} numbers, NDims is {header['ndims']}")
    channels = integers("ElementNumberOfChannels", header.get("elementnumberofchannels", "1"))
    shape = sizes[::-1] if channels == (1,) else (*sizes[::-1], channels[0])
    return Header(shape, data_type("ElementType", header.get("elementtype", ""), _TYPES))
