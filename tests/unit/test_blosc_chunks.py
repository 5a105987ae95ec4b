"""Blosc chunks of a block are the same, bit for bit and error for error, as alone."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.documents import CRC32C
from tests.unit import test_chunk_decoder as batches
from tests.unit.test_chunk_decoder import COUNT, FILL, SIZE, values
from zarrfs.errors import DecodeError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs import blosc_streams
from zarrfs.format.codecs.blosc import BloscCodec
from zarrfs.format.codecs.blosc_header import MEMCPYED
from zarrfs.format.codecs.crc32c import Crc32cCodec

EXACT = SizeBound(SIZE, exact=True)


def document(cname="lz4", shuffle="shuffle"):
    configuration = {
        "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 2, "blocksize": 0,
    }  # fmt: skip
    return {"name": "blosc", "configuration": configuration}


def container(number, cname="lz4", shuffle="shuffle", data=None, blocksize=0):
    data = values(number).tobytes() if data is None else data
    codec = BloscCodec(cname, 5, shuffle, blocksize, 2)
    return bytes(codec.bind(SizeBound(len(data), exact=True)).encode(data))


def changed(number, at, value):
    data = bytearray(container(number))
    data[at : at + len(value)] = value
    return bytes(data)


def word(value):
    return struct.pack("<I", value)


DAMAGE = {
    "whole": container,
    "by zstd": lambda n: container(n, "zstd", "bitshuffle"),
    "uncompressed": lambda n: container(n, shuffle="noshuffle"),
    "by snappy": lambda n: container(n, "snappy"),
    "by zlib": lambda n: container(n, "zlib"),
    "by zlib, cut short": lambda n: container(n, "zlib")[:-6],
    "missing": lambda _: None,
    "cut short": lambda n: container(n)[:-6],
    "longer": lambda n: container(n) + b"junk",
    "of another size": lambda n: container(n, data=b"ab" * 9),
    "empty": lambda _: b"",
    "of nothing": lambda n: container(n, data=b""),
    "a header alone": lambda n: container(n)[:16],
    "half a header": lambda n: container(n)[:9],
    "no container": lambda _: b"rubbish" * 9,
    "says that it decodes to more": lambda n: changed(n, 4, word(SIZE + 1)),
    "says that it decodes to less": lambda n: changed(n, 4, word(SIZE - 1)),
    "says that it decodes to 4 GiB": lambda n: changed(n, 4, word(2**32 - 1)),
    "says that it is longer": lambda n: changed(n, 12, word(1 << 20)),
    "without a block size": lambda n: changed(n, 8, word(0)),
    "of large blocks": lambda n: changed(n, 8, word(2**31)),
    "of another version": lambda n: changed(n, 0, b"\x7f"),
    "by an unknown compressor": lambda n: changed(n, 2, b"\xe1"),
    "of elements of no size": lambda n: changed(n, 3, b"\x00"),
    "with a block elsewhere": lambda n: changed(n, 16, word(1 << 30)),
    "with a long stream": lambda n: changed(n, 20, word(1 << 30)),
}
GOOD = ("whole", "by zstd", "uncompressed", "by snappy", "by zlib")


@pytest.fixture(autouse=True)
def streams_of_zlib_are_long(monkeypatch):
    monkeypatch.setattr(blosc_streams, "_LONG", 1)


@given(st.lists(st.sampled_from(sorted(DAMAGE)), min_size=COUNT, max_size=COUNT))
def test_whatever_is_stored_comes_as_it_does_alone(names):
    stored = [DAMAGE[name](i) for i, name in enumerate(names)]
    for array in batches.arrays(stored, [document()]):
        found = batches.check(array)
        for i, name in enumerate(names):
            if name in GOOD:
                assert found[i,] == values(i).tobytes()
            elif name == "missing":
                assert found[i,] == FILL
            else:
                assert isinstance(found[i,], tuple), name


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_the_neighbours_of_a_damaged_chunk_are_whole(name):
    stored = [DAMAGE[name](i) if i == 3 else container(i) for i in range(COUNT)]
    for array in batches.arrays(stored, [document()]):
        found = batches.check(array)
        for i in range(COUNT):
            if i != 3 or name in GOOD:
                assert found[i,] == values(i).tobytes()
        if name not in (*GOOD, "missing"):
            assert isinstance(found[3,], tuple)


@pytest.mark.parametrize("bad", [None, 0, 7])
def test_a_checksum_behind_blosc_is_looked_at(bad):
    stored = []
    for i in range(COUNT):
        data = container(i)
        stored.append(bytes(Crc32cCodec().bind(SizeBound(len(data), exact=True)).encode(data)))
    if bad is not None:
        stored[bad] = stored[bad][:-1] + bytes([stored[bad][-1] ^ 1])
    for array in batches.arrays(stored, [document(), CRC32C]):
        found = batches.check(array)
        for i in range(COUNT):
            assert isinstance(found[i,], tuple) if i == bad else found[i,] == values(i).tobytes()


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
def test_every_compressor_and_shuffle(cname, shuffle):
    for blocksize in (0, 128):
        check_decoded(cname, shuffle, blocksize)


def check_decoded(cname, shuffle, blocksize):
    bound = BloscCodec(cname, 5, shuffle, typesize=2).bind(EXACT)
    out = memoryview(bytearray(SIZE))
    for i in range(COUNT):
        data = container(i, cname, shuffle, blocksize=blocksize)
        decoded = bound.decode(memoryview(b"?" + data)[1:], out)
        # Elements that are not compressed stay where they are.
        assert (decoded is out) != bool(data[2] & MEMCPYED)
        assert bytes(decoded) == values(i).tobytes()


def test_a_block_that_is_decoded_in_part_is_an_error():
    """c-blosc says nothing but that it decoded less; the rest would be what was there before.

    It decodes 3 streams of 333 bytes to a block of 1000 bytes.
    """
    size, part = 1000, 333
    streams = b"".join(word(part) + bytes([65 + i]) * part for i in range(3))
    header = struct.pack("<4B3I", 2, 1, 1 << 5, 3, size, size, 20 + len(streams))
    data = header + word(20) + streams
    bound = BloscCodec("lz4", 5, "noshuffle").bind(SizeBound(size, exact=True))
    for out in (None, memoryview(bytearray(size))):
        with pytest.raises(DecodeError):
            bound.decode(data, out)
