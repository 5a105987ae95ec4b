"""``meta`` and ``attrs``: Zarr v1, converted to the form of v3.

https://zarr-specs.readthedocs.io/en/latest/v1/v1.0.html

v1 has no groups and no filters. Its writer, zarr-python 1, follows ``order`` only for chunks that
Blosc compresses. Every other chunk is in C order, against the specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.format.chunk_layout import V2Keys
from zarrfs.format.metadata.documents import V1_ARRAY, V1_ATTRIBUTES, load_json
from zarrfs.format.metadata.members import Damage, reading
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.older.v2 import layout_and_summary, read_attributes, read_grid
from zarrfs.format.metadata.older.v2_codecs import Filter
from zarrfs.format.unserved import UnservedError


def parse_array_v1(meta: bytes, attrs: bytes | None) -> ArrayMetadata:
    """The array that the two documents describe; ``attrs`` is None if there is none.

    Raises MetadataError and UnsupportedError.
    """
    attributes = None if attrs is None else load_json(attrs, V1_ATTRIBUTES)
    return read_array_v1(load_json(meta, V1_ARRAY), attributes)


def read_array_v1(value: Any, attributes: Any, damage: Damage | None = None) -> ArrayMetadata:
    """As `parse_array_v1`, from parsed documents; ``damage`` as `noting` takes it."""
    if not isinstance(value, Mapping) or value.get("zarr_format") != 1:
        raise MetadataError(V1_ARRAY, "is not an object with zarr_format 1")
    try:
        return _array(value, read_attributes(attributes, V1_ATTRIBUTES, damage))
    except RecursionError as error:
        raise MetadataError(V1_ARRAY, "is nested too deeply") from error


def _array(value: Mapping[str, Any], attributes: Mapping[str, Any]) -> ArrayMetadata:
    grid = read_grid(value, V1_ARRAY)
    with reading(V1_ARRAY, "compression"):
        chain = _chain(value.get("compression"), value.get("compression_opts"))
    if value.get("order") == "F" and value.get("compression") != "blosc":
        value = {**value, "order": "C"}
    layout, summary = layout_and_summary(value, grid, chain, V1_ARRAY)
    return ArrayMetadata(
        zarr_format=1,
        shape=grid.shape,
        layout=layout,
        chunk_keys=V2Keys(),
        dimension_names=(),
        attributes=attributes,
        summary={**summary, "chunk_key_encoding": {"name": "v2"}},
        has_fill=value.get("fill_value") is not None,
    )


def _chain(compression: Any, options: Any) -> list[Filter]:
    """The single compressor, as a codec of v2."""
    match compression, options:
        case ((None | "none"), _):
            return []
        case (("zlib" | "gzip"), (None | int())):
            # Both names mean the zlib format.
            return [{"id": "zlib"} if options is None else {"id": "zlib", "level": options}]
        case "bz2", (None | int()):
            return [{"id": "bz2"} if options is None else {"id": "bz2", "level": options}]
        case (("lzma" | "blosc"), (None | {})):
            return [{"id": compression, **(options or {})}]
        case (("zlib" | "gzip" | "bz2" | "lzma" | "blosc"), _):
            raise ValueError(f"{compression} with compression_opts {options!r}")
    raise UnservedError(f"unknown compression {compression!r}")
