"""NRRD: https://teem.sourceforge.net/nrrd/format.html."""

from __future__ import annotations

from zarrfs.library.headers.header import (
    Header,
    HeaderError,
    data_type,
    fields,
    integers,
    read_start,
)

MAGIC = b"NRRD"

_TYPES = {
    **dict.fromkeys(("signed char", "int8", "int8_t"), "int8"),
    **dict.fromkeys(("uchar", "unsigned char", "uint8", "uint8_t"), "uint8"),
    **dict.fromkeys(
        ("short", "short int", "signed short", "signed short int", "int16", "int16_t"), "int16"
    ),
    **dict.fromkeys(
        ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"), "uint16"
    ),
    **dict.fromkeys(("int", "signed int", "int32", "int32_t"), "int32"),
    **dict.fromkeys(("uint", "unsigned int", "uint32", "uint32_t"), "uint32"),
    **dict.fromkeys(
        (
            *("longlong", "long long", "long long int", "signed long long"),
            *("signed long long int", "int64", "int64_t"),
        ),
        "int64",
    ),
    **dict.fromkeys(
        (
            *("ulonglong", "unsigned long long", "unsigned long long int"),
            *("uint64", "uint64_t"),
        ),
        "uint64",
    ),
    "float": "float32",
    "double": "float64",
}


def read_nrrd(path: str) -> Header:
    """Raises HeaderError."""
    start = read_start(path).replace(b"\r\n", b"\n")
    header = fields(start.partition(b"\n\n")[0].decode("utf-8", "replace"), ":")
    sizes = integers("sizes", header.get("sizes", ""))
    if integers("dimension", header.get("dimension", "")) != (len(sizes),):
        raise HeaderError(f"there are {len(sizes)} sizes for dimension {header['dimension']!r}")
    return Header(sizes[::-1], data_type("type", header.get("type", ""), _TYPES))
