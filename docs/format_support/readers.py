"""Asks other implementations for an array: do they find the elements that were written?"""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version as package_version
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorstore as ts
import zarr
from zarr.storage import LocalStore
from zarrs._internal import ChunkItem, CodecPipelineImpl

from .samples import DOCUMENTS, Elements, parsed

Reader = Callable[[Path, Literal[1, 2, 3]], Elements]


def zarr_python(place: Path, version: Literal[1, 2, 3]) -> Elements:
    if version == 1:
        raise NotImplementedError
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"
    with warnings.catch_warnings(), zarr.config.set({"codec_pipeline.path": pipeline}):
        warnings.simplefilter("ignore")
        return np.asarray(zarr.open_array(str(place), mode="r", zarr_format=version)[...])


def _tensorstore_spec(place: Path, version: Literal[1, 2, 3]) -> dict[str, Any]:
    driver = {2: "zarr", 3: "zarr3"}[version]
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{place}/"}}


def tensorstore(place: Path, version: Literal[1, 2, 3]) -> Elements:
    array = ts.open(_tensorstore_spec(place, version), read=True).result()
    elements = np.asarray(array.read().result())
    if array.dtype != ts.byte:
        return elements
    # Raw bytes have an axis of their own and, for numpy, no size; they are there all the same.
    raw = ctypes.string_at(elements.ctypes.data, math.prod(elements.shape))
    return np.frombuffer(raw, f"V{array.shape[-1]}")


def tensorstore_fields(place: Path, version: Literal[1, 2, 3]) -> Elements:
    dtype = parsed(place, version).layout.data_type.dtype
    if dtype.names is None:
        raise NotImplementedError
    spec = _tensorstore_spec(place, version)
    parts = {
        name: ts.open({**spec, "field": name}, read=True).result().read().result()
        for name in dtype.names
    }
    whole = np.empty(parsed(place, version).shape, dtype)
    for name, part in parts.items():
        whole[name] = part
    return whole


def zarrs(place: Path, version: Literal[1, 2, 3]) -> Elements:
    """Without zarr-python around it, which has fewer data types and codecs.

    That leaves grids, keys and elements of no fixed size out, which are zarr-python's
    where the two are together.
    """
    array = parsed(place, version)
    summary, data_type = array.summary, array.layout.data_type
    if (
        version == 1
        or summary["chunk_grid"]["name"] != "regular"
        or summary["chunk_key_encoding"]["name"] not in ("default", "v2")
        or not data_type.fixed_size
    ):
        raise NotImplementedError
    document = (place / DOCUMENTS[version]).read_text()
    pipeline = CodecPipelineImpl(document, LocalStore(place), validate_checksums=True)
    size = data_type.item_size
    untouched = b"\x55" * (size * math.prod(array.shape))
    whole = np.frombuffer(untouched, f"V{size}").reshape(array.shape).copy()
    grid = array.layout.stored
    chunks = []
    for index in product(*map(range, grid.counts)):
        origin, valid = grid.origin(index), grid.valid_shape(index)
        at = [slice(o, o + n) for o, n in zip(origin, valid, strict=True)]
        inside = [slice(0, n) for n in valid]
        key = array.chunk_keys.key(index)
        chunks.append(ChunkItem(key, inside, grid.chunk_shape(index), at, array.shape))
    pipeline.retrieve_chunks_and_apply_index(chunks, whole)
    return whole


PEERS: dict[str, Sequence[tuple[str, Reader]]] = {
    f"zarr-python {package_version('zarr')}": (("yes", zarr_python),),
    f"TensorStore {package_version('tensorstore')}": (
        ("yes", tensorstore),
        ("by field", tensorstore_fields),
    ),
    f"zarrs {package_version('zarrs')}": (("yes", zarrs),),
}
"""By name and version: what to answer where a way to read works."""

_IN_RUST: dict[str, Sequence[str]] = {
    "Data types": ("fixed_length_utf32", "string", "bytes"),
    "Codecs": (
        "bitround", "cast_value", "pcodec", "scale_offset", "vlen-bytes", "vlen-utf8", "zfp",
    ),
    "Filters and compressors of v2": ("vlen-bytes", "vlen-utf8"),
    "Chunk grids": ("rectilinear", "rectangular", "zarrs.regular_bounded"),
    "Chunk key encodings": ("suffix", "zarrs.default_suffix"),
}  # fmt: skip
RUST_ONLY = frozenset((table, name) for table, names in _IN_RUST.items() for name in names)
"""Table and row of what is in the source of the Rust library and not in its Python package."""


def finds(reader: Reader, place: Path, version: Literal[1, 2, 3], expected: Elements) -> bool:
    """Whether the peer reads the same bits."""
    try:
        return same(reader(place, version), expected)
    except Exception:  # noqa: BLE001 - whatever they raise, they do not read it
        return False
    except BaseException as error:
        # A Rust panic does not derive from Exception.
        if type(error).__name__ != "PanicException":
            raise
        return False


def same(found: Elements, expected: Elements) -> bool:
    if expected.dtype == object:
        return _listed(found) == _listed(expected)
    return found.astype(found.dtype.newbyteorder("<")).tobytes() == expected.tobytes()


def _listed(elements: Elements) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in elements.flat]
