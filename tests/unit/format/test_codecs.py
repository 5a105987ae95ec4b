"""One round trip for every codec in the registry, and what each makes of damaged input."""

import gzip
import os
import pickle
import zlib
from contextlib import nullcontext, suppress

import numcodecs.pickles
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from tests.traced import traced
from zarrfs.errors import DecodeError
from zarrfs.format.codec import ChunkSpec, SizeBound
from zarrfs.format.codecs.bytes import BytesCodec
from zarrfs.format.codecs.gzip import DeflateCodec
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import CODECS, find_codec, find_data_type

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
SHARDS = {"chunk_shape": [2, 5, 2], "codecs": [LITTLE], "index_codecs": [LITTLE, "crc32c"]}
BLOSC = {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}

# For each codec: its configuration, and the type of the elements that it is given.
CASES: dict[str, tuple[dict[str, object], str]] = {
    "bitround": ({"keepbits": 10}, "float32"),
    "cast_value": ({"data_type": "int64"}, "int16"),
    "reshape": ({"shape": [[0, 1], -1]}, "float32"),
    "scale_offset": ({"offset": 3, "scale": 2}, "int32"),
    "squeeze": ({}, "float32"),
    "zarrs.squeeze": ({}, "float32"),
    "transpose": ({"order": [2, 0, 1]}, "float32"),
    "bytes": ({"endian": "big"}, "float32"),
    "packbits": ({"padding_encoding": "first_byte"}, "bool"),
    "pcodec": ({}, "float32"),
    "sharding_indexed": (SHARDS, "float32"),
    "vlen-bytes": ({}, "bytes"),
    "vlen-utf8": ({}, "string"),
    "zfp": ({"mode": "reversible"}, "float32"),
    "blosc": (BLOSC, "float32"),
    "crc32c": ({}, "float32"),
    "gzip": ({"level": 1}, "float32"),
    "zstd": ({"level": 1, "checksum": True}, "float32"),
    "numcodecs.astype": ({"encode_dtype": "<f8", "decode_dtype": "<f4"}, "float32"),
    "numcodecs.bitround": ({"keepbits": 10}, "float32"),
    "numcodecs.delta": ({"dtype": "<i4"}, "int32"),
    "numcodecs.fixedscaleoffset": (
        {"offset": 10, "scale": 1, "dtype": "<f8", "astype": "<i4"},
        "float64",
    ),
    "numcodecs.packbits": ({}, "bool"),
    "numcodecs.quantize": ({"digits": 3, "dtype": "<f4"}, "float32"),
    "numcodecs.pcodec": ({"level": 8, "mode_spec": "auto"}, "float32"),
    "numcodecs.zfpy": ({"mode": 4, "tolerance": 0}, "float32"),
    "numcodecs.adler32": ({}, "float32"),
    "numcodecs.blosc": ({"cname": "lz4", "clevel": 5, "shuffle": 2}, "float32"),
    "numcodecs.bz2": ({"level": 1}, "float32"),
    "numcodecs.crc32": ({"location": "start"}, "float32"),
    "numcodecs.crc32c": ({}, "float32"),
    "numcodecs.fletcher32": ({}, "float32"),
    "numcodecs.gzip": ({}, "float32"),
    "numcodecs.jenkins_lookup3": ({}, "float32"),
    "numcodecs.lz4": ({}, "float32"),
    "numcodecs.lzma": ({"preset": 1}, "float32"),
    "numcodecs.shuffle": ({"elementsize": 4}, "float32"),
    "numcodecs.zlib": ({"level": 1}, "float32"),
    "numcodecs.zstd": ({"level": 1}, "float32"),
}
CHECKED = (
    "crc32c", "gzip", "zstd", "numcodecs.adler32", "numcodecs.crc32", "numcodecs.crc32c",
    "numcodecs.fletcher32", "numcodecs.gzip", "numcodecs.jenkins_lookup3", "numcodecs.lzma",
    "numcodecs.bz2", "numcodecs.zlib",
)  # fmt: skip
"""Those that find every flipped bit of what they protect."""

SHAPE = (6, 5, 4)


def pipeline_of(name: str) -> CodecPipeline:
    """The codec, with what it needs before it is a pipeline."""
    configuration, _ = CASES[name]
    codec = {"name": name, "configuration": configuration}
    kind, _ = find_codec(name)
    if kind == "array -> array":
        return parse_pipeline([codec, LITTLE])
    if kind == "array -> bytes":
        return parse_pipeline([codec])
    return parse_pipeline([LITTLE, codec])


def bound(name: str, shape: tuple[int, ...] = SHAPE):
    data_type = find_data_type(CASES[name][1])
    value = {"string": "", "bytes": "", "bool": False}.get(data_type.name, 7)
    return pipeline_of(name).bind(ChunkSpec(shape, data_type, data_type.fill_bytes(value)))


def chunk_for(name: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Elements that the lossy codecs keep as well."""
    dtype = find_data_type(CASES[name][1]).dtype
    count = int(np.prod(shape))
    numbers = (np.arange(count) * 37 % 101 - 20).reshape(shape)
    if dtype.kind == "O":
        chunk = np.empty(count, object)
        for i, number in enumerate(numbers.ravel().tolist()):
            text = "ä" * (i % 4) + str(number)
            chunk[i] = text.encode() if CASES[name][1] == "bytes" else text
        return chunk.reshape(shape)
    if dtype.kind == "b":
        return numbers % 3 == 0
    return numbers.astype(dtype)


def test_every_codec_of_the_registry_is_tried():
    assert CASES.keys() == CODECS.keys()


@pytest.mark.parametrize("name", CASES)
def test_round_trip(name):
    # Inner chunks do not fit into every shape.
    check_round_trip(name, (8, 15, 2) if name == "sharding_indexed" else (12, 15, 1))
    check_round_trip(name, SHAPE)
    check_round_trip(name, (4, 5, 2))


def check_round_trip(name, shape):
    codec, chunk = bound(name, shape), chunk_for(name, shape)
    data = bytes(codec.encode(chunk))
    assert len(data) <= codec.encoded.maximum
    assert not codec.encoded.exact or len(data) == codec.encoded.maximum
    decoded = codec.decode(data)
    assert (decoded.dtype, decoded.shape) == (chunk.dtype, chunk.shape)
    assert np.array_equal(decoded, chunk)
    memory = np.empty(codec.spec.nbytes, np.uint8).data
    assert np.array_equal(codec.decode(memoryview(data), memory), chunk)
    assert np.array_equal(codec.decode(bytearray(data)), chunk)


@pytest.mark.parametrize("name", CASES)
def test_a_chunk_in_any_memory_order_is_encoded_alike(name):
    codec, chunk = bound(name), chunk_for(name)
    strided = np.empty((12, 5, 4), chunk.dtype)[::2]
    strided[...] = chunk
    expected = bytes(codec.encode(chunk))
    for same in (np.asfortranarray(chunk), strided):
        assert bytes(codec.encode(same)) == expected


@pytest.mark.parametrize("name", CASES)
def test_truncated_input(name):
    codec, chunk = bound(name), chunk_for(name)
    data = bytes(codec.encode(chunk))
    for damaged in (b"", *(data[:n] for n in range(1, len(data), max(1, len(data) // 40)))):
        try:
            decoded = codec.decode(damaged)
        except DecodeError:
            continue
        # zfp ends with padding that nothing reads.
        assert "zfp" in name
        assert len(damaged) > len(data) - 8
        assert np.array_equal(decoded, chunk)


LENIENT_TAILS = ("pcodec", "numcodecs.pcodec", "zfp", "numcodecs.zfpy", "vlen-utf8", "vlen-bytes",
                 "sharding_indexed")  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if name not in LENIENT_TAILS])
def test_what_stands_behind_the_data_is_an_error(name):
    codec = bound(name)
    data = bytes(codec.encode(chunk_for(name)))
    for tail in (b"\1", b"junk" * 100):
        check_refused(codec, data, tail)


def check_refused(codec, data, tail):
    with pytest.raises(DecodeError):
        codec.decode(data + tail)


@pytest.mark.parametrize("name", CASES)
def test_flipped_bits(name):
    codec, chunk = bound(name), chunk_for(name)
    data = bytes(codec.encode(chunk))
    step = max(1, 8 * len(data) // 400)
    for bit in range(0, 8 * len(data), step):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            decoded = codec.decode(bytes(damaged))
        except DecodeError:
            continue
        assert decoded.shape == chunk.shape
        if name in CHECKED:
            # The header's fields that say nothing of the content may be anything.
            assert np.array_equal(decoded, chunk)


@pytest.mark.parametrize("name", CASES)
@examples(25)
@given(data=st.binary(max_size=700))
def test_any_bytes_decode_or_are_an_error(name, data):
    codec = bound(name)
    with suppress(DecodeError):
        assert codec.decode(data).shape == SHAPE


def deflated(window_bits):
    stream = zlib.compressobj(9, zlib.DEFLATED, window_bits)
    return b"".join(stream.compress(bytes(1 << 20)) for _ in range(20)) + stream.flush()


def made_by(name, elements=5_000_000):
    """What the codec itself makes of far too many elements."""
    return bytes(bound(name, (elements,)).encode(np.zeros(elements, "<f4")))


BOMBS = {
    "numcodecs.zlib": lambda: deflated(15),
    "numcodecs.gzip": lambda: deflated(31),
    "numcodecs.bz2": lambda: made_by("numcodecs.bz2"),
    "numcodecs.lzma": lambda: made_by("numcodecs.lzma"),
    "numcodecs.lz4": lambda: made_by("numcodecs.lz4"),
    "numcodecs.blosc": lambda: made_by("numcodecs.blosc"),
    "numcodecs.zstd": lambda: made_by("numcodecs.zstd"),
    "numcodecs.pcodec": lambda: made_by("numcodecs.pcodec"),
    "numcodecs.zfpy": lambda: made_by("numcodecs.zfpy"),
    "vlen-utf8": lambda: b"\xff\xff\xff\x7f" + bytes(600),
    "vlen-bytes": lambda: b"\xff\xff\xff\x7f" + bytes(600),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_more_memory_than_its_chunk(name):
    bomb = BOMBS[name]()
    codec = bound(name)
    with traced() as peak, pytest.raises(DecodeError):
        codec.decode(bomb)
    assert peak() < 4 * len(bomb) + (4 << 20)


class TestBytes:
    @pytest.mark.parametrize("value", [2, 128, 255])
    def test_a_bool_is_0_or_1(self, value):
        spec = ChunkSpec((4,), find_data_type("bool"), b"\0")
        codec = CodecPipeline((), BytesCodec(), ()).bind(spec)
        assert codec.decode(b"\0\1\0\1").tolist() == [False, True, False, True]
        with pytest.raises(DecodeError, match="bool"):
            codec.decode(bytes([0, 1, value, 0]))
        with pytest.raises(DecodeError, match="bool"):
            codec.decode(bytes([0, 1, value, 0]), np.empty(4, bool))

    def test_elements_without_a_fixed_size_are_refused(self):
        with pytest.raises(ValueError, match="fixed size"):
            parse_pipeline([LITTLE]).bind(ChunkSpec((4,), find_data_type("string"), b""))


class TestPipelines:
    @pytest.mark.parametrize("codecs", [
        [LITTLE], [LITTLE, "crc32c"], [LITTLE, "crc32c", "crc32c"], [LITTLE, "crc32c", GZIP],
        [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE, GZIP, "crc32c"],
    ])  # fmt: skip
    def test_encoding_in_parts_gives_the_same_bytes(self, codecs):
        codec = parse_pipeline(codecs).bind(ChunkSpec((3, 4), find_data_type("int16"), bytes(2)))
        chunk = np.arange(12, dtype=np.int16).reshape(3, 4)
        parts = codec.encode_in_parts(chunk)
        assert b"".join(parts) == bytes(codec.encode(chunk))
        assert len(parts) == 1 + (codecs[-1] == "crc32c")

    def test_a_checksum_behind_a_chunk_needs_no_copy_of_it(self):
        codec = parse_pipeline([LITTLE, "crc32c"])
        chunk = np.arange(12, dtype=np.int16)
        parts = codec.bind(ChunkSpec((12,), find_data_type("int16"), bytes(2))).encode_in_parts(
            chunk
        )
        assert np.shares_memory(np.frombuffer(parts[0], np.int16), chunk)

    @pytest.mark.parametrize("codecs", [
        [], ["crc32c"], ["crc32c", "bytes"], ["bytes", "squeeze"], ["bytes", "bytes"],
        [{"name": "bytes"}, 5], [{"configuration": {}}], [None],
    ])  # fmt: skip
    def test_what_is_no_pipeline(self, codecs):
        with pytest.raises(ValueError):
            parse_pipeline(codecs)

    @pytest.mark.parametrize(("name", "configuration"), [
        ("gzip", {"level": 1, "speed": 2}),
        ("reshape", {"shape": [[1, 0]]}),
        ("reshape", {"shape": [-1, -1]}),
        ("reshape", {"shape": [0]}),
        ("reshape", {"shape": 5}),
        ("reshape", {}),
        ("packbits", {"padding_encoding": "middle"}),
        ("packbits", {"first_bit": -1}),
        ("zfp", {"mode": "fixed_rate"}),
        ("zfp", {"mode": "fixed_rate", "tolerance": 1}),
        ("zfp", {"mode": "best"}),
        ("cast_value", {"data_type": "string"}),
        ("cast_value", {"data_type": "no-such-type"}),
        ("cast_value", {"data_type": "int8", "rounding": "up"}),
        ("cast_value", {"data_type": "int8", "scalar_map": {"encode": [[1]]}}),
        ("cast_value", {"data_type": "int8", "unknown": 1}),
        ("numcodecs.lzma", {"format": 77}),
        ("numcodecs.lzma", {"format": 3, "filters": [{"id": 33, "dict_size": 2**32 - 1}]}),
        ("numcodecs.blosc", {"shuffle": 9}),
        ("numcodecs.shuffle", {"elementsize": None}),
        ("numcodecs.crc32", {"location": "middle"}),
    ])  # fmt: skip
    def test_a_configuration_that_is_none(self, name, configuration):
        with pytest.raises(ValueError):
            parse_pipeline([{"name": name, "configuration": configuration}, "bytes"])


@pytest.mark.parametrize("size", [2, 4])
def test_elements_to_be_shuffled_are_whole(size):
    with pytest.raises(ValueError, match="divide"):
        find_codec("numcodecs.shuffle")[1](elementsize=size).bind(SizeBound(size + 1, exact=True))


class Payload:
    """Makes a directory where it is unpickled."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


@pytest.mark.parametrize("name", CASES)
def test_no_configuration_makes_it_another_codec(name, tmp_path, monkeypatch):
    """Least of all one that would run what the data bring along."""
    # As it was before numcodecs 0.16.4, and is where somebody allowed it for other data.
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    configuration, data_type = CASES[name]
    kind, _ = find_codec(name)
    element = find_data_type(data_type)
    fill = bytes(element.item_size) if element.fixed_size else b""
    data = pickle.dumps(Payload(tmp_path / "ran"))
    for member in ("id", "codec_id", "name", "cls"):
        codec = {"name": name, "configuration": {**configuration, member: "pickle"}}
        around = {"array -> array": [codec, LITTLE], "array -> bytes": [codec]}
        with suppress(ValueError, DecodeError):
            pipeline = parse_pipeline(around.get(kind, [LITTLE, codec]))
            found = pipeline.bind(ChunkSpec(SHAPE, element, fill))
            found.decode(data.ljust(found.encoded.maximum, b"\0") if found.encoded.exact else data)
        assert not (tmp_path / "ran").exists(), member


@pytest.mark.parametrize("name", ["adler32", "crc32", "delta", "fletcher32", "packbits"])
def test_an_id_that_is_another_codecs_is_refused(name):
    configuration, _ = CASES[f"numcodecs.{name}"]
    for codec_id, works in ((name, True), ("zlib", False), ("pickle", False), (5, False)):
        codec = {"name": f"numcodecs.{name}", "configuration": {**configuration, "id": codec_id}}
        order = [LITTLE, codec] if find_codec(f"numcodecs.{name}")[0][0] == "b" else [codec, LITTLE]
        with nullcontext() if works else pytest.raises(ValueError, match="another codec"):
            parse_pipeline(order)


class TestReshape:
    @pytest.mark.parametrize(("shape", "reshaped"), [
        ([[0, 1], [2]], (30, 4)),
        ([[0], -1], (6, 20)),
        ([-1], (120,)),
        ([2, 3, [1, 2]], (2, 3, 20)),
        ([[0, 1, 2], []], (120, 1)),
    ])  # fmt: skip
    def test_shapes(self, shape, reshaped):
        codec = find_codec("reshape")[1](
            tuple(tuple(e) if isinstance(e, list) else e for e in shape)
        )
        spec = ChunkSpec(SHAPE, find_data_type("int8"), b"\0")
        assert codec.bind(spec).encoded.shape == reshaped

    @pytest.mark.parametrize("shape", [(7, -1), (119,), ((0, 1), 5), ((3,), -1), (2, (0,), 10)])
    def test_shapes_that_do_not_fit(self, shape):
        with pytest.raises(ValueError):
            find_codec("reshape")[1](shape).bind(ChunkSpec(SHAPE, find_data_type("int8"), b"\0"))


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_deflated_by_us_is_read_by_pythons_own_library(size):
    data = np.random.default_rng(0).normal(300, 20, size).astype("<u2").tobytes()
    spec = SizeBound(len(data), exact=True)
    for level in range(-1, 10):
        by_zlib = bytes(DeflateCodec("zlib", level).bind(spec).encode(data))
        assert zlib.decompress(by_zlib) == data, level
        assert len(by_zlib) <= 1.02 * len(zlib.compress(data, level)) + 16, level
        by_gzip = DeflateCodec("gzip", level).bind(spec).encode(data)
        assert gzip.decompress(by_gzip) == data, level
        assert by_gzip == DeflateCodec("gzip", level).bind(spec).encode(data), level
