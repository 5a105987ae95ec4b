"""Streams of every codec, alone and one in another, and shards: the chunk, or `DecodeError`."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.guarded import Guarded
from tests.fuzz.mutate import mutated_bytes
from zarrfs.errors import DecodeError
from zarrfs.format.codec import ChunkSpec
from zarrfs.format.metadata.older.v2 import read_array_v2
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.pipeline import ChunkCodec, decode_bytes, encode_bytes
from zarrfs.format.registry import parse_data_type

_SHAPE = (6, 10)
_LARGEST = 1 << 16


def _codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


LITTLE = _codec("bytes", endian="little")
GZIP, ZSTD = _codec("gzip", level=1), _codec("zstd", level=1, checksum=False)
CRC = {"name": "crc32c"}


def _blosc(cname: str, shuffle: str, size: int = 4) -> dict[str, Any]:
    return _codec("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=size, blocksize=0)


def _sharding(codecs: list[Any], shape: Sequence[int] = (3, 5), place: str = "end") -> Any:
    index = [LITTLE, CRC]
    return _codec("sharding_indexed", chunk_shape=list(shape), codecs=codecs, index_codecs=index,
                  index_location=place)  # fmt: skip


V3: dict[str, tuple[Any, list[Any]]] = {
    "bytes": ("float32", [LITTLE]),
    "packbits": ("bool", [_codec("packbits", padding_encoding="first_byte")]),
    "packbits-int4": ("int4", [_codec("packbits")]),
    "pcodec": ("float32", [_codec("pcodec")]),
    "vlen-bytes": ("bytes", [{"name": "vlen-bytes"}]),
    "vlen-utf8": ("string", [{"name": "vlen-utf8"}]),
    "vlen-utf8-zstd": ("string", [{"name": "vlen-utf8"}, ZSTD]),
    "gzip": ("float32", [LITTLE, GZIP]),
    "zstd": ("float32", [LITTLE, ZSTD]),
    "zstd-checksum": ("float32", [LITTLE, _codec("zstd", level=1, checksum=True)]),
    "crc32c": ("float32", [LITTLE, CRC]),
    "gzip-zstd": ("float32", [LITTLE, GZIP, ZSTD]),
    "zstd-gzip": ("float32", [LITTLE, ZSTD, GZIP]),
    **{
        f"blosc-{cname}-{shuffle}": ("float32", [LITTLE, _blosc(cname, shuffle)])
        for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
    "blosc-gzip": ("float32", [LITTLE, _blosc("lz4", "shuffle"), GZIP]),
    **{
        f"numcodecs.{name}": ("float32", [LITTLE, _codec(f"numcodecs.{name}", **configuration)])
        for name, configuration in {
            "adler32": {}, "bz2": {"level": 1}, "crc32": {}, "fletcher32": {}, "gzip": {},
            "jenkins_lookup3": {}, "lz4": {}, "lzma": {"preset": 0}, "zlib": {"level": 1},
            "shuffle": {"elementsize": 4}, "zstd": {"level": 1},
        }.items()
    },
    "numcodecs.packbits": ("bool", [_codec("numcodecs.packbits"), LITTLE]),
    "cast": ("int16", [_codec("cast_value", data_type="float64", out_of_range="clamp"), LITTLE]),
    "scale": ("float32", [_codec("scale_offset", offset=1.0, scale=3.0), LITTLE]),
    "shard": ("float32", [_sharding([LITTLE])]),
    "shard-start": ("float32", [_sharding([LITTLE, CRC], place="start")]),
    "shard-zstd": ("float32", [_sharding([LITTLE, ZSTD])]),
    "shard-of-shards": ("float32", [_sharding([_sharding([LITTLE, GZIP], (3, 5))], (3, 10))]),
    "shard-gzip": ("float32", [_sharding([LITTLE]), GZIP]),
    "struct": (
        {"name": "struct", "configuration": {"fields": [
            {"name": "a", "data_type": "int32"}, {"name": "b", "data_type": "float64"}]}},
        [LITTLE, GZIP],
    ),
}  # fmt: skip

ISOLATED: dict[str, tuple[Any, list[Any]]] = {
    "zfp": ("float32", [_codec("zfp", mode="fixed_accuracy", tolerance=0.01)]),
    "zfp-rate": ("float64", [_codec("zfp", mode="fixed_rate", rate=10)]),
    "zfp-reversible": ("int32", [_codec("zfp", mode="reversible")]),
    "zfpy": ("float32", [_codec("numcodecs.zfpy", mode=4, tolerance=0.01)]),
}

V2: dict[str, dict[str, Any]] = {
    "json2": {"dtype": "|O", "filters": [{"id": "json2"}]},
    "msgpack2": {"dtype": "|O", "filters": [{"id": "msgpack2"}]},
    "categorize": {"dtype": "|O",
                   "filters": [{"id": "categorize", "labels": ["a", "b"], "dtype": "|O"}]},
    "vlen-array": {"dtype": "|O", "filters": [{"id": "vlen-array", "dtype": "<i4"}]},
    "json2-zlib": {"dtype": "|O", "filters": [{"id": "json2"}], "compressor": {"id": "zlib"}},
    "delta": {"dtype": "<i4", "filters": [{"id": "delta", "dtype": "<i4"}]},
    "base64": {"dtype": "<i4", "filters": [{"id": "base64"}]},
    "quantize": {"dtype": "<f4", "filters": [{"id": "quantize", "digits": 2, "dtype": "<f4"}]},
    "fixedscaleoffset": {"dtype": "<f8", "filters": [
        {"id": "fixedscaleoffset", "offset": 1, "scale": 10, "dtype": "<f8", "astype": "|u1"}]},
    "blosc": {"dtype": ">f4", "order": "F", "compressor": {"id": "blosc"}},
}  # fmt: skip


def checked(error: Exception) -> str:
    """An error that a user may be shown."""
    told = str(error)
    assert len(told) < 10_000, f"a message of {len(told)} characters"
    return "refused"


class Target(NamedTuple):
    name: str
    codec: ChunkCodec
    seeds: tuple[bytes, ...]


class Streams:
    """A case decodes one changed chunk of one pipeline; every fourth leaves the outermost codec
    as it is and changes what is in it.
    """

    def __init__(self, *, isolated: bool = False) -> None:
        pipelines = ISOLATED if isolated else V3
        self._targets = [_v3(name, *given) for name, given in pipelines.items()]
        if not isolated:
            self._targets += [_v2(name, members) for name, members in V2.items()]
        self._input, self._output = Guarded(_LARGEST), Guarded(_LARGEST)

    def __len__(self) -> int:
        return len(self._targets)

    def run(self, random: Random) -> str | None:
        """What became of a case, where it is an error that is allowed."""
        target = random.choice(self._targets)
        codec, seeds = target.codec, target.seeds
        data = random.choice(seeds)
        outer = codec.bytes_bytes[-1:]
        if outer and random.random() < 0.25:
            inner = mutated_bytes(random, bytes(decode_bytes(outer, data)), seeds)
            with suppress(ValueError, IndexError):  # filters take whole elements, and some bytes
                data = bytes(encode_bytes(outer, inner))
        else:
            data = mutated_bytes(random, data, seeds)
        data = data[:_LARGEST]
        size = codec.spec.nbytes
        memory = self._output.room(size) if random.random() < 0.5 else None
        try:
            chunk = codec.decode(self._input.holding(data), memory)
        except DecodeError as error:
            return checked(error)
        assert chunk.shape == codec.spec.shape, target.name
        assert chunk.dtype == codec.spec.dtype, target.name
        chunk.tobytes()  # every byte of it can be read
        return None


def _elements(dtype: np.dtype[Any], name: str, number: int) -> Any:
    generator = np.random.default_rng(number)
    if dtype.kind == "O":
        chunk = np.empty(_SHAPE, object)
        kinds = {"bytes": [b"", b"ab"], "vlen-array": [[1, 2], []], "categorize": ["a", "b"]}
        values = kinds.get(name, ["", "aü", "x" * 20])
        for position in np.ndindex(_SHAPE):
            chunk[position] = values[int(generator.integers(len(values)))]
        return chunk
    values = np.cumsum(generator.integers(-2, 3, _SHAPE))
    if number == 1:
        values = np.zeros(_SHAPE)
    if dtype.names is not None:
        chunk = np.zeros(_SHAPE, dtype)
        for field in dtype.names:
            chunk[field] = values.reshape(_SHAPE)
        return chunk
    return (values.reshape(_SHAPE) % 7).astype(dtype)


def _seeds(codec: ChunkCodec, name: str) -> tuple[bytes, ...]:
    return tuple(bytes(codec.encode(_elements(codec.spec.dtype, name, n))) for n in range(3))


def _v3(name: str, data_type: Any, codecs: list[Any]) -> Target:
    found = parse_data_type(data_type)
    fill = bytes(found.item_size) if found.fixed_size else b""
    codec = parse_pipeline(codecs).bind(ChunkSpec(_SHAPE, found, fill))
    return Target(name, codec, _seeds(codec, found.name))


def _v2(name: str, members: dict[str, Any]) -> Target:
    document = {
        "zarr_format": 2, "shape": _SHAPE, "chunks": _SHAPE, "compressor": None, "filters": None,
        "fill_value": None, "order": "C", **members,
    }  # fmt: skip
    codec = read_array_v2(document, None).layout.chunk_codec(_SHAPE)
    return Target(name, codec, _seeds(codec, name))
