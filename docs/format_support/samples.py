"""Arrays of a few elements, each with one thing that a reader must know."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.data_type import DataType
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.older.v1 import parse_array_v1
from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.pipeline import ChunkCodec

Json = dict[str, Any]
Elements = NDArray[Any]

LITTLE: Json = {"name": "bytes", "configuration": {"endian": "little"}}
DOCUMENTS = {1: "meta", 2: ".zarray", 3: "zarr.json"}


@dataclass(frozen=True)
class Sample:
    """One array.

    document : its metadata, as text or as JSON.
    strict : another document that says the same and has no deviation, for making chunks.
    spoil : changes the bytes of each encoded chunk.
    values : of elements that have no fixed size.
    """

    version: Literal[1, 2, 3]
    document: Mapping[str, Any] | str
    strict: Mapping[str, Any] | None = None
    spoil: Callable[[bytes], bytes] | None = None
    values: Sequence[Any] = ("a", "", "Käse", "b")

    @property
    def text(self) -> str:
        return self.document if isinstance(self.document, str) else json.dumps(self.document)


def v3(data_type: Any = "int32", **members: Any) -> Json:
    """A v3 document with some members replaced."""
    document: Json = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 3],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [LITTLE],
        "attributes": {},
    }
    return {**document, **members}


def v2(dtype: Any = "<i4", **members: Any) -> Json:
    """A ``.zarray`` with some members replaced."""
    document: Json = {
        "zarr_format": 2,
        "shape": [4, 3],
        "chunks": [4, 3],
        "dtype": dtype,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        "compressor": None,
    }
    return {**document, **members}


def v1(**members: Any) -> Json:
    """A v1 ``meta`` with some members replaced."""
    document: Json = {
        "zarr_format": 1,
        "shape": [4, 3],
        "chunks": [4, 3],
        "dtype": "<i4",
        "fill_value": 0,
        "order": "C",
        "compression": "zlib",
        "compression_opts": 1,
    }
    return {**document, **members}


def write(sample: Sample, place: Path) -> Elements:
    """The sample as a directory, for all readers; returns what they should find.

    Raises ValueError and ZarrfsError where zarrfs cannot encode it.
    """
    place.mkdir()
    (place / DOCUMENTS[sample.version]).write_text(sample.text)
    array = parse(sample.version, json.dumps(sample.strict) if sample.strict else sample.text)
    whole = np.empty(array.shape, array.layout.data_type.dtype)
    for index, codec in _codecs(array):
        values = _elements(array.layout.data_type, codec.spec.shape, sample.values)
        encoded = bytes(codec.encode(values))
        _put(whole, array, index, codec.decode(encoded))
        path = place / array.chunk_keys.key(index)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample.spoil(encoded) if sample.spoil else encoded)
    return whole


def read(place: Path, version: Literal[1, 2, 3]) -> Elements:
    """The whole array, as zarrfs decodes it. Raises ZarrfsError."""
    array = parsed(place, version)
    whole = np.empty(array.shape, array.layout.data_type.dtype)
    for index, codec in _codecs(array):
        data = (place / array.chunk_keys.key(index)).read_bytes()
        _put(whole, array, index, codec.decode(data))
    return whole


def _codecs(array: ArrayMetadata) -> Iterator[tuple[tuple[int, ...], ChunkCodec]]:
    """Index and codec of every stored object, shards being objects."""
    layout = array.layout
    pipeline = parse_pipeline(array.summary["codecs"]) if layout.sharded else layout.pipeline
    for index in product(*map(range, layout.stored.counts)):
        yield index, pipeline.bind(layout.spec(layout.stored.chunk_shape(index)))


def _put(whole: Elements, array: ArrayMetadata, index: tuple[int, ...], chunk: Elements) -> None:
    origin, valid = array.layout.stored.origin(index), array.layout.stored.valid_shape(index)
    at = tuple(slice(o, o + n) for o, n in zip(origin, valid, strict=True))
    whole[at] = chunk[tuple(map(slice, valid))]


def parsed(place: Path, version: Literal[1, 2, 3]) -> ArrayMetadata:
    return parse(version, (place / DOCUMENTS[version]).read_text())


def parse(version: Literal[1, 2, 3], text: str) -> ArrayMetadata:
    if version == 1:
        return parse_array_v1(text.encode(), None)
    if version == 2:
        return parse_array_v2(text.encode(), None)
    node = parse_node(load_json(text.encode(), "zarr.json"))
    assert isinstance(node, ArrayMetadata)
    return node


def _elements(data_type: DataType, shape: tuple[int, ...], values: Sequence[Any]) -> Elements:
    count, dtype = math.prod(shape), data_type.dtype
    if not data_type.fixed_size:
        flat = np.empty(count, object)
        for position in range(count):
            value = values[position % len(values)]
            flat[position] = value.encode() if data_type.name == "bytes" else value
        return flat.reshape(shape)
    if dtype.kind in "biufc":
        return (np.arange(count) % 2).astype(dtype).reshape(shape)
    size = 4 if dtype.kind == "U" else 1
    first = ord("A") if dtype.kind == "U" else 0
    words = (first + np.arange(count * dtype.itemsize // size) % 2).astype(f"<u{size}")
    return words.view(dtype).reshape(shape)
