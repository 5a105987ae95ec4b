"""Blosc containers that other libraries decode: by and for other implementations, and damaged."""

import contextlib
import functools
import itertools
import json
import struct
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import tensorstore as ts
import zarr
from hypothesis import given
from hypothesis import strategies as st
from numcodecs import blosc as numcodecs_blosc

from tests.soak import examples
from zarrfs.errors import DecodeError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs import blosc_streams
from zarrfs.format.codecs.blosc import BloscCodec

SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
TYPESIZES = (1, 2, 3, 4, 8, 16, 17, 100, 255)
BLOCKSIZES = (0, 128, 1000, 4096, 1 << 20)
MEMCPYED, RESERVED, UNSPLIT = 0x02, 0x08, 0x10

# A ragged number of elements of every type size, which compress well with any shuffle.
STEPS = (np.arange(12_345, dtype="<u4") // 3).tobytes()[:-1]
SMALL = STEPS[:3001]
NOISE = np.random.default_rng(0).bytes(5000)
# Blosc makes no blocks of splits of less than 64 KiB: of such, three and a rest.
WIDE = (np.arange(50_001, dtype="<u4") // 64).tobytes()[:-1]

bounded = examples(150)


def configuration(shuffle, typesize, blocksize, clevel=5, cname="snappy"):
    return {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": typesize,
            "blocksize": blocksize}  # fmt: skip


def document(plain, **blosc):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [len(plain)],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(plain)]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}, {"name": "blosc", "configuration": blosc}],
    }


def make(path, plain, **blosc):
    """An array of the bytes of ``plain`` in one chunk, which is still to be written."""
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps(document(plain, **blosc)))


def by_tensorstore(path):
    # Nothing here has to survive a power failure.
    spec = {"driver": "zarr3", "kvstore": f"file://{path}/", "context": {"file_io_sync": False}}
    return ts.open(spec).result()


def write_tensorstore(path, values):
    by_tensorstore(path)[...] = values


def by_zarrs(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(path)


def write_zarrs(path, values):
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        by_zarrs(path)[...] = values


def read_tensorstore(path):
    return by_tensorstore(path).read().result().tobytes()


def read_zarrs(path):
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return by_zarrs(path)[...].tobytes()


def bound(plain, **blosc):
    return BloscCodec(**blosc).bind(SizeBound(len(plain), exact=True))


def decoded(data, plain):
    """What ``data`` decodes to, without memory given for it and with."""
    codec = BloscCodec("snappy", 5, "noshuffle").bind(SizeBound(len(plain), exact=True))
    result = bytes(codec.decode(data, None))
    out = memoryview(bytearray(len(plain)))
    assert bytes(codec.decode(memoryview(data), out)) == result
    return result


@pytest.mark.parametrize("blocksize", BLOCKSIZES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("write", [write_tensorstore, write_zarrs])
def test_what_others_write(tmp_path, write, shuffle, blocksize):
    for typesize in TYPESIZES:
        path = tmp_path / str(typesize)
        make(path, STEPS, **configuration(shuffle, typesize, blocksize))
        write(path, np.frombuffer(STEPS, np.uint8))
        data = (path / "c" / "0").read_bytes()
        assert data[2] >> 5 == 2
        assert decoded(data, STEPS) == STEPS


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_others_write_what_only_snappy_decodes(tmp_path, shuffle):
    make(tmp_path / "a", STEPS, **configuration(shuffle, 4, 1000))
    write_zarrs(tmp_path / "a", np.frombuffer(STEPS, np.uint8))
    data = (tmp_path / "a" / "c" / "0").read_bytes()
    assert blosc_streams.handles(data)
    with pytest.raises(RuntimeError):
        numcodecs_blosc.decompress(data)


@pytest.mark.parametrize("blocksize", BLOCKSIZES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("read", [read_tensorstore, read_zarrs])
@pytest.mark.parametrize("cname", ["snappy", "zlib"])
def test_what_others_read(tmp_path, cname, read, shuffle, blocksize):
    for typesize in TYPESIZES:
        settings = configuration(shuffle, typesize, blocksize, cname=cname)
        path = tmp_path / str(typesize)
        make(path, STEPS, **settings)
        (path / "c").mkdir()
        data = bound(STEPS, **settings).encode(STEPS)
        (path / "c" / "0").write_bytes(data)
        assert read(path) == STEPS
        assert decoded(data, STEPS) == STEPS


@pytest.mark.parametrize("plain", [STEPS, SMALL, NOISE, NOISE + STEPS, bytes(200), b"", b"few"])
@pytest.mark.parametrize("cname", ["snappy", "zlib"])
def test_round_trip(cname, plain):
    for clevel, shuffle, typesize in itertools.product(range(10), SHUFFLES, TYPESIZES):
        check_round_trip(plain, cname, clevel, shuffle, typesize)


def check_round_trip(plain, cname, clevel, shuffle, typesize):
    codec = bound(plain, **configuration(shuffle, typesize, 0, clevel, cname))
    data = codec.encode(plain)
    assert len(data) <= codec.encoded.maximum
    assert decoded(data, plain) == plain
    if cname == "zlib" and plain:
        assert data[2] >> 5 == 3
        assert numcodecs_blosc.decompress(data) == plain


def test_what_repeats_gets_shorter_and_what_does_not_is_stored():
    def size(plain, shuffle, clevel):
        return len(bound(plain, **configuration(shuffle, 4, 0, clevel)).encode(plain))

    assert size(STEPS, "shuffle", 5) < size(STEPS, "noshuffle", 5) < len(STEPS)
    assert size(NOISE, "shuffle", 5) == 16 + len(NOISE)
    assert size(STEPS, "shuffle", 0) == 16 + len(STEPS)


def test_cramjam_is_imported_when_a_chunk_needs_it():
    program = """
import sys
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs.blosc import BloscCodec
for cname in ("lz4", "snappy"):
    codec = BloscCodec(cname, 5, "shuffle", typesize=4).bind(SizeBound(4000, exact=True))
    codec.decode(codec.encode(bytes(4000)), None)
    print("cramjam" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.split() == [b"False", b"True"]


@functools.cache
def intact(shuffle, typesize, blocksize):
    data = bound(WIDE, **configuration(shuffle, typesize, blocksize)).encode(WIDE)
    assert blosc_streams.handles(data)
    return data


def container(shuffle="shuffle", typesize=4, blocksize=1000):
    """Four blocks, the first three in splits and the last in one stream."""
    return bytearray(intact(shuffle, typesize, blocksize))


def number(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def check_damaged(data, plain=WIDE):
    """Decoded or refused, in memory of the order of what the chunk decodes to."""
    codec = BloscCodec("snappy", 5, "noshuffle").bind(SizeBound(len(plain), exact=True))
    most = 4 * len(plain) + (1 << 16)
    # More than once: a thread that an earlier test left may allocate at the same time.
    for _ in range(3):
        error, peak = None, 0
        tracemalloc.start()
        try:
            assert len(codec.decode(data, None)) == len(plain)
        except DecodeError as refused:
            error = refused
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        if peak < most:
            break
    assert peak < most
    if error is not None:
        raise error


NONSENSE = (0, 1, 15, 16, 17, 127, 128, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF)


def words(at, values):
    return [(at, value.to_bytes(4, "little")) for value in values]


@pytest.mark.parametrize("places", [
    [(0, b"\1"), (0, b"\3"), (1, b"\0"), (1, b"\2"), (3, b"\0")],
    # A reserved flag, and splits that do not divide the block.
    [(2, bytes([container()[2] | RESERVED])), (3, b"\3"), (3, b"\7")],
    # Sizes of blocks, and for each block its offset and the length of its stream.
    words(8, [*NONSENSE, len(WIDE) + 1]),
    words(16, [len(container()) - back for back in range(1, 5)]),
    *[words(16 + 4 * block, NONSENSE) for block in range(4)],
    *[words(number(container(), 16 + 4 * block), NONSENSE) for block in range(4)],
])  # fmt: skip
def test_what_cannot_be_in_a_container(places):
    for at, value in places:
        data = container()
        data[at : at + len(value)] = value
        with pytest.raises(DecodeError):
            check_damaged(data)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_cut_container(shuffle):
    data = container(shuffle)
    for size in (*range(60), *range(60, len(data), 101), len(data) - 1):
        cut = data[:size]
        cut[12:16] = size.to_bytes(4, "little")
        with pytest.raises(DecodeError):
            check_damaged(cut[:size])


@pytest.mark.parametrize("claim", [
    b"\0", b"\x01", b"\xff\x01", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff", b"",
])  # fmt: skip
def test_a_stream_that_tells_another_size(claim):
    """As Snappy has it: the size as a varint, here before a run of one byte."""
    stream = claim + b"\0x" + b"\xfe\x01\0" * 4
    plain = bytes(1000)
    header = bytes([2, 1, 0x40 | UNSPLIT, 1]) + (1000).to_bytes(4, "little") * 2
    parts = (24 + len(stream), 20, len(stream))
    data = header + b"".join(part.to_bytes(4, "little") for part in parts) + stream
    with pytest.raises(DecodeError):
        check_damaged(data, plain)


def test_blocks_that_share_a_stream():
    """As a small container may have them; but not more blocks than it has offsets."""
    data = container()
    data[16:28] = data[16:20] * 3
    check_damaged(data)
    data[8:12] = (1).to_bytes(4, "little")
    with pytest.raises(DecodeError):
        check_damaged(data)


@st.composite
def damaged(draw):
    shuffle, typesize = draw(st.sampled_from(SHUFFLES)), draw(st.sampled_from((1, 3, 4, 8, 100)))
    data = container(shuffle, typesize, draw(st.sampled_from((128, 1000))))
    fields = [3, *range(8, min(64, len(data) - 4), 4)]
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("byte", "number", "stream", "cut", "longer")))
        if kind == "byte":
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        elif kind == "number":
            at = draw(st.sampled_from(fields))
            value = draw(st.sampled_from(NONSENSE) | st.integers(0, len(WIDE) + 1))
            data[at : at + 4] = value.to_bytes(4, "little")
        elif kind == "stream":
            at = draw(st.integers(16, len(data) - 1))
            data[at : at + 8] = draw(st.binary(min_size=8, max_size=8))
        elif kind == "cut":
            del data[draw(st.integers(20, len(data))) :]
        else:
            data += draw(st.binary(max_size=8))
    if draw(st.integers(0, 9)):
        # Else nothing would be met but the sizes that the header tells.
        data[2] &= ~MEMCPYED
        data[4:8] = len(WIDE).to_bytes(4, "little")
        data[12:16] = len(data).to_bytes(4, "little")
    return bytes(data)


@bounded
@given(damaged())
def test_damage_is_decoded_or_refused(data):
    with contextlib.suppress(DecodeError):
        check_damaged(data)


# Streams of zlib


@pytest.mark.parametrize("clevel", range(10))
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_streams_of_zlib_are_about_as_short_as_those_of_c_blosc(shuffle, clevel):
    number = numcodecs_blosc.SHUFFLE if shuffle == "shuffle" else numcodecs_blosc.BITSHUFFLE
    number = numcodecs_blosc.NOSHUFFLE if shuffle == "noshuffle" else number
    theirs = numcodecs_blosc.compress(MANY, b"zlib", clevel, number, 0, 4)
    ours = bound(MANY, **configuration(shuffle, 4, 0, clevel, "zlib")).encode(MANY)
    assert len(ours) < 1.05 * len(theirs)
    if blosc_streams.encodes("zlib", clevel, number) and 0 < clevel < 9:
        assert bytes(ours) != theirs


def test_what_lz4_does_not_shorten_is_left_to_c_blosc():
    """Symbols of five bits in no order: for deflate five eighths of the bytes, for LZ4 all."""
    plain = np.random.default_rng(2).integers(0, 32, 100_000, np.uint8).tobytes()
    data = bound(plain, **configuration("shuffle", 1, 0, 5, "zlib")).encode(plain)
    assert len(data) < 0.7 * len(plain)
    assert decoded(data, plain) == plain


def zlib_container(plain, shuffle, typesize=4, blocksize=0):
    settings = {"shuffle": shuffle, "typesize": typesize, "blocksize": blocksize}
    data = bytes(bound(plain, cname="zlib", clevel=5, **settings).encode(plain))
    assert data[2] >> 5 == 3
    assert not data[2] & MEMCPYED
    return data


def outcome(data, size):
    """The decoded bytes, or None if the container is refused."""
    codec = BloscCodec("zlib", 5, "noshuffle").bind(SizeBound(size, exact=True))
    try:
        return bytes(codec.decode(data, None))
    except DecodeError:
        return None


@contextlib.contextmanager
def calls_of_fill(long=blosc_streams._LONG):
    """What `fill` returned, with streams of that mean length taken for long."""
    returned = []

    def fill(*arguments, real=blosc_streams.fill):
        returned.append(real(*arguments))
        return returned[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blosc_streams, "_LONG", long)
        patch.setattr(blosc_streams, "fill", fill)
        yield returned


MANY = np.random.default_rng(1).integers(0, 1000, 150_001).astype("<f4").tobytes()[:-1]


@pytest.mark.parametrize("typesize", [1, 2, 4, 8, 17])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_long_streams_of_zlib_come_as_c_blosc_decodes_them(shuffle, typesize):
    for blocksize in (0, 100_000):
        data = zlib_container(MANY, shuffle, typesize, blocksize)
        with calls_of_fill() as returned:
            assert outcome(data, len(MANY)) == MANY == numcodecs_blosc.decompress(data)
        assert returned == [True]


def test_short_streams_of_zlib_are_left_to_c_blosc():
    with calls_of_fill() as returned:
        assert outcome(zlib_container(SMALL, "shuffle"), len(SMALL)) == SMALL
    assert returned == []


def test_a_stream_of_zlib_with_bytes_behind_its_end_is_left_to_c_blosc():
    data = bytearray(zlib_container(SMALL, "noshuffle", 1))
    data += b"behind"
    length = number(data, 20) + len(b"behind")
    data[20:24], data[12:16] = length.to_bytes(4, "little"), len(data).to_bytes(4, "little")
    with calls_of_fill(long=1) as returned:
        assert outcome(data, len(SMALL)) == SMALL
    assert returned == [False]


@given(st.data())
@bounded
def test_a_damaged_container_of_zlib_comes_as_c_blosc_decodes_it(data):
    shuffle, typesize = data.draw(st.sampled_from(SHUFFLES)), data.draw(st.sampled_from((1, 3, 4)))
    container = bytearray(zlib_container(STEPS, shuffle, typesize, 128 * typesize))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(
            st.integers(16, len(container) - 8) | st.sampled_from((0, 1, 2, 3, 8, 16, 20))
        )
        container[at : at + 4] = data.draw(
            st.binary(min_size=1, max_size=4)
            | st.sampled_from(NONSENSE).map(lambda n: n.to_bytes(4, "little"))
        )[:4]
    container[4:8] = len(STEPS).to_bytes(4, "little")
    container[12:16] = len(container).to_bytes(4, "little")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blosc_streams, "_LONG", 1)
        ours = outcome(container, len(STEPS))
        patch.setattr(blosc_streams, "libdeflate", lambda: None)
        assert ours == outcome(container, len(STEPS))


def test_a_block_that_is_decoded_in_part_is_an_error():
    """c-blosc says nothing but that it decoded less; the rest would be what was there before.

    It decodes 3 streams of 333 bytes to a block of 1000 bytes.
    """
    size, part = 1000, 333
    streams = b"".join(struct.pack("<I", part) + bytes([65 + i]) * part for i in range(3))
    header = struct.pack("<4B3I", 2, 1, 1 << 5, 3, size, size, 20 + len(streams))
    data = header + struct.pack("<I", 20) + streams
    bound = BloscCodec("lz4", 5, "noshuffle").bind(SizeBound(size, exact=True))
    for out in (None, memoryview(bytearray(size))):
        with pytest.raises(DecodeError):
            bound.decode(data, out)
