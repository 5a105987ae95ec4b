"""Metadata of all versions, consolidated ones, references: a node, or an error of ours."""

import json
from contextlib import suppress
from random import Random
from typing import Any

from tests.fuzz import streams
from tests.fuzz.mutate import mutated_bytes, mutated_json
from zarrfs.errors import DecodeError, ZarrfsError
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.older.v1 import parse_array_v1
from zarrfs.format.metadata.older.v2 import (
    parse_array_v2,
    read_consolidated_v2,
    read_group_v2,
)
from zarrfs.format.metadata.strict import deviations
from zarrfs.format.metadata.v3 import parse_node

_LARGEST_CHUNK = 1 << 20
_GRIDS = (
    {"name": "regular", "configuration": {"chunk_shape": [6, 10]}},
    {"name": "rectilinear",
     "configuration": {"kind": "inline", "chunk_shapes": [[6, [6, 3]], [[10, 2]]]}},
    {"name": "rectangular", "configuration": {"chunk_shape": [[6, 18], 10]}},
    {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [6, 10]}},
)  # fmt: skip
_TYPES: tuple[tuple[Any, Any], ...] = (
    ("bool", True), ("int16", -3), ("uint64", 2**64 - 1), ("float16", "NaN"),
    ("complex64", ["NaN", 1.5]), ("float64", "0x7ff8000000000001"), ("r16", [1, 2]),
    ("bfloat16", 1.5), ("int4", -8), ("float8_e4m3", "NaN"), ("complex_bfloat16", [1, 2]),
    ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}, "NaT"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, "ab"),
    ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}, "AAA="),
    ({"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "int8"}, {"name": "b", "data_type": "float32"}]}},
     {"a": 1, "b": "NaN"}),
    ("string", "a"), ("bytes", "AAA="),
)  # fmt: skip
_SEPARATORS = ({"name": "default", "configuration": {"separator": "."}}, {"name": "v2"},
               {"name": "default"})  # fmt: skip


def _v3_documents() -> list[Any]:
    documents: list[Any] = []
    pipelines = {**streams.V3, **streams.ISOLATED}
    for number, (data_type, codecs) in enumerate(pipelines.values()):
        fill: Any = {"string": "", "bytes": "", "bool": False}.get(str(data_type), 0)
        documents.append(_v3(number, data_type=data_type, codecs=codecs, fill_value=fill))
    documents += [
        _v3(number, data_type=data_type, fill_value=fill)
        for number, (data_type, fill) in enumerate(_TYPES)
    ]
    documents += [_v3(number, chunk_grid=grid) for number, grid in enumerate(_GRIDS)]
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"a": {"b": [1, 2]}}}
    inline = {"kind": "inline", "must_understand": False}
    below = {"a": documents[0], "a/b": group, "c/d/e": documents[1]}
    return [*documents, group, {**group, "consolidated_metadata": {**inline, "metadata": below}}]


def _v3(number: int, **members: Any) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [24, 20],
        "data_type": "float32",
        "chunk_grid": _GRIDS[0],
        "chunk_key_encoding": _SEPARATORS[number % len(_SEPARATORS)],
        "fill_value": 0,
        "codecs": [streams.LITTLE],
        "attributes": {"units": "m", "list": [1, None, {"a": 0.5}]},
        "dimension_names": ["y", None],
        **members,
    }


def _v2_documents() -> list[Any]:
    dtypes = ("<f8", "|b1", ">i4", "|S5", "<U3", "|V4", "<M8[10s]", "<c8", [["a", "<i4"]],
              [["a", ">f4"], ["b", "|S3", [2, 2]], ["c", [["d", "|u1"]]]])  # fmt: skip
    documents = [{**_v2(), "dtype": dtype} for dtype in dtypes]
    documents += [{**_v2(), **members} for members in streams.V2.values()]
    for compressor in ("gzip", "zlib", "bz2", "lzma", "lz4", "zstd", "blosc"):
        documents.append({**_v2(), "compressor": {"id": compressor}})
    return documents


def _v2() -> dict[str, Any]:
    return {
        "zarr_format": 2, "shape": [24, 20], "chunks": [6, 10], "dtype": "<f8", "order": "C",
        "fill_value": 0, "filters": None, "compressor": None, "dimension_separator": ".",
    }  # fmt: skip


_V1 = [
    {"zarr_format": 1, "shape": [24, 20], "chunks": [6, 10], "dtype": dtype, "order": "C",
     "fill_value": 0, "compression": compression, "compression_opts": options}
    for dtype in ("<f8", "|S3", [["a", "<i4"]])
    for compression, options in ((None, None), ("zlib", 1), ("bz2", 1), ("lzma", None),
                                 ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}))
]  # fmt: skip


class Documents:
    """A case parses one changed document; where it is served, the chunk of its fill values and
    some random bytes are decoded, too.
    """

    def __init__(self) -> None:
        self._v3, self._v2, self._v1 = _v3_documents(), _v2_documents(), _V1

    def run(self, random: Random) -> str | None:
        version = random.choice((3, 3, 3, 2, 2, 1))
        seeds = {3: self._v3, 2: self._v2, 1: self._v1}[version]
        value = mutated_json(random, random.choice(seeds), seeds)
        text = json.dumps(value).encode()
        if random.random() < 0.1:
            text = mutated_bytes(random, text)
        try:
            metadata = self._parse(random, version, text)
        except ZarrfsError as error:
            return streams.checked(error)
        if isinstance(metadata, ArrayMetadata):
            self._use(random, metadata)
        return None

    def _parse(self, random: Random, version: int, text: bytes) -> Any:
        if version == 3:
            value = load_json(text, "zarr.json")
            try:
                return parse_node(value)
            finally:
                if random.random() < 0.1:
                    deviations(value)
        other = random.choice((None, text, b'{"_ARRAY_DIMENSIONS": ["y", "x"]}', b"[]"))
        if version == 1:
            return parse_array_v1(text, other)
        if random.random() < 0.1:
            consolidated = json.dumps({"metadata": {"a/.zarray": {}, ".zgroup": {}}}).encode()
            documents = load_json(mutated_bytes(random, consolidated), ".zmetadata")
            children = read_consolidated_v2(documents)
            attributes = None if other is None else load_json(other, ".zattrs")
            return read_group_v2(load_json(text, ".zgroup"), attributes, children)
        return parse_array_v2(text, other)

    def _use(self, random: Random, metadata: ArrayMetadata) -> None:
        assert len(metadata.fingerprint) == 64
        layout = metadata.layout
        shape = layout.read.largest_chunk
        codec = layout.chunk_codec(shape)
        if codec.spec.nbytes > _LARGEST_CHUNK or codec.spec.elements > _LARGEST_CHUNK:
            return
        layout.wrappings(layout.stored.largest_chunk)
        filled = codec.spec.filled()
        assert filled.shape == shape
        with suppress(DecodeError):
            codec.decode(random.randbytes(random.choice((0, 1, 16, 200))))
