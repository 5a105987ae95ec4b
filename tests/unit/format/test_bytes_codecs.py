"""The bytes -> bytes codecs one by one: what their formats allow, and what bad input does."""

import bz2
import gzip
import lzma
import tracemalloc
import zlib

import numcodecs
import numpy as np
import pytest
import zstandard
from numcodecs import blosc as numcodecs_blosc
from numcodecs import lz4
from numcodecs import zstd as numcodecs_zstd

from tests.traced import traced
from zarrfs.errors import DecodeError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs import gzip as gzip_codec
from zarrfs.format.codecs import zstd
from zarrfs.format.codecs.blosc import BloscCodec
from zarrfs.format.codecs.crc32c import Crc32cCodec
from zarrfs.format.codecs.gzip import DeflateCodec
from zarrfs.format.codecs.lz4 import Lz4Codec
from zarrfs.format.codecs.native import libdeflate
from zarrfs.format.codecs.streams import Bz2Codec, lzma_codec
from zarrfs.format.codecs.zstd import ZstdCodec, content_size

GZIP, ZLIB = DeflateCodec("gzip"), DeflateCodec("zlib")
TEXT = bytes(range(256)) * 40
EXACT = SizeBound(len(TEXT), exact=True)
ROOMY = SizeBound(len(TEXT) + 100, exact=False)


def zstd_stream(*frames: bytes) -> bytes:
    return b"".join(frames)


def zstd_frame_without_content_size(data: bytes) -> bytes:
    """One frame of one raw block whose header tells a window but no content size."""
    assert len(data) < 1 << 17
    block = (len(data) << 3 | 1).to_bytes(3, "little") + data
    return (0xFD2FB528).to_bytes(4, "little") + bytes([0b0000_0000, 0x50]) + block


def zstd_skippable(data: bytes) -> bytes:
    return (0x184D2A50).to_bytes(4, "little") + len(data).to_bytes(4, "little") + data


class TestGzip:
    def test_memory_for_more_than_there_is_does_not_become_part_of_the_result(self):
        data = gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])
        out = memoryview(bytearray(ROOMY.maximum))
        assert bytes(GZIP.bind(ROOMY).decode(data, out)) == TEXT

    def test_file_name_and_comment_in_the_header(self):
        raw = zlib.compressobj(wbits=-15)
        body = raw.compress(TEXT) + raw.flush()
        header = b"\x1f\x8b\x08\x18" + bytes(4) + b"\0\xff" + b"name\0" + b"comment\0"
        trailer = zlib.crc32(TEXT).to_bytes(4, "little") + len(TEXT).to_bytes(4, "little")
        assert bytes(GZIP.bind(EXACT).decode(header + body + trailer, None)) == TEXT


@pytest.mark.parametrize("library", [libdeflate(), None], ids=["libdeflate", "zlib alone"])
@pytest.mark.parametrize(
    ("codec", "encode"),
    [(GZIP, gzip.compress), (ZLIB, zlib.compress)],
)
class TestDeflate:
    """What libdeflate decodes, and what is left to zlib, is told apart by what is stored."""

    @pytest.fixture(autouse=True)
    def decoder(self, monkeypatch, library):
        monkeypatch.setattr(gzip_codec, "libdeflate", lambda: library)

    @pytest.mark.parametrize("size", [1, 100, len(TEXT)])
    @pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
    def test_whole_streams(self, codec, encode, size, form):
        bound = codec.bind(SizeBound(size, exact=True))
        for data in encode(TEXT[:size]), bytes(bound.encode(TEXT[:size])):
            out = memoryview(bytearray(size))
            assert bytes(bound.decode(form(data), None)) == TEXT[:size]
            assert bound.decode(form(data), out) is out
            assert bytes(out) == TEXT[:size]

    def test_several_streams(self, codec, encode):
        data = encode(TEXT[:100]) + encode(b"") + encode(TEXT[100:])
        out = memoryview(bytearray(len(TEXT)))
        assert bytes(codec.bind(EXACT).decode(data, out)) == TEXT
        assert bytes(codec.bind(ROOMY).decode(data, None)) == TEXT

    @pytest.mark.parametrize("size", [len(TEXT) - 1, len(TEXT) + 1, 0])
    def test_of_another_size(self, codec, encode, size):
        bound = codec.bind(SizeBound(size, exact=True))
        around = bytearray(b"?" * (size + 64))
        with pytest.raises(DecodeError):
            bound.decode(encode(TEXT), memoryview(around)[32 : 32 + size])
        assert around[:32] == around[32 + size :] == b"?" * 32

    def test_damaged_anywhere(self, codec, encode):
        whole = encode(TEXT[:300])
        bound = codec.bind(SizeBound(300, exact=True))
        for place in range(len(whole)):
            for bad in (
                whole[:place],
                whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :],
            ):
                try:
                    decoded = bytes(bound.decode(bad, None))
                except DecodeError:
                    continue
                # Of a gzip header, some bytes tell nothing of the contents.
                assert decoded == TEXT[:300]
                assert 4 <= place < 10

    def test_zeros_behind_members_as_numcodecs_reads_them(self, codec, encode):
        first, rest = encode(TEXT[:100]), encode(TEXT[100:])
        for data in (
            encode(TEXT) + bytes(1), encode(TEXT) + bytes(70_000),
            first + bytes(3) + rest, first + rest + bytes(512),
        ):  # fmt: skip
            for bound in codec.bind(EXACT), codec.bind(ROOMY):
                if codec is ZLIB:
                    with pytest.raises(DecodeError):
                        bound.decode(data, None)
                else:
                    assert numcodecs.GZip().decode(data) == TEXT
                    assert bytes(bound.decode(data, None)) == TEXT

    def test_what_follows(self, codec, encode):
        for junk in (
            b"\0junk",
            b"\0\0" + encode(TEXT)[:20],
            b"junk",
            encode(TEXT)[:20],
            encode(TEXT),
        ):
            with pytest.raises(DecodeError):
                codec.bind(EXACT).decode(encode(TEXT) + junk, memoryview(bytearray(len(TEXT))))


def test_libdeflate_is_there():
    """Where a new release of its package hides it, gzip is decoded at half the speed."""
    assert libdeflate() is not None


class TestZstd:
    @pytest.mark.parametrize("checksum", [False, True])
    @pytest.mark.parametrize("large", [1, 3 << 20])
    def test_encoding_several_is_encoding_each(self, checksum, large):
        codec = ZstdCodec(3, checksum)
        data = [TEXT, b"", TEXT[:77], bytes(large), TEXT]
        encoded = codec.bind(SizeBound(large, exact=False)).encode_all(data)
        assert [zstandard.decompress(each) for each in encoded] == data
        for each, plain in zip(encoded, data, strict=True):
            parameters = zstandard.get_frame_parameters(each)
            assert parameters.content_size == len(plain)
            assert parameters.has_checksum == checksum

    @pytest.mark.parametrize("bound", [EXACT, ROOMY])
    def test_several_frames(self, bound):
        data = zstd_stream(
            numcodecs_zstd.compress(TEXT[:5000], 1),
            zstd_skippable(b"ignored"),
            numcodecs_zstd.compress(TEXT[5000:], 3),
        )
        assert bytes(ZstdCodec().bind(bound).decode(data, None)) == TEXT

    def test_frames_without_content_size(self):
        data = zstd_stream(
            zstd_frame_without_content_size(TEXT[:1000]), numcodecs_zstd.compress(TEXT[1000:], 1)
        )
        assert content_size(data)[0] is None
        out = bytearray(len(TEXT))
        assert bytes(ZstdCodec().bind(EXACT).decode(data, memoryview(out))) == TEXT
        assert bytes(ZstdCodec().bind(EXACT).decode(data, None)) == TEXT

    @pytest.mark.parametrize("data", [TEXT[:-1], TEXT + b"!"], ids=["short", "long"])
    def test_a_frame_without_content_size_that_is_too_short_or_long(self, data):
        with pytest.raises(DecodeError):
            ZstdCodec().bind(EXACT).decode(zstd_frame_without_content_size(data), None)

    def test_a_thread_keeps_a_compressor_of_little_memory_only(self):
        for level, kept in ((1, True), (19, False)):
            ZstdCodec(level=level).bind(EXACT).encode(bytes(1 << 20))
            assert (zstd._threads.compressor is not None) == kept

    def test_a_block_of_the_reserved_type(self):
        with pytest.raises(DecodeError, match="reserved"):
            content_size(bytes.fromhex("28b52ffd0058 070000"))

    def test_a_frame_without_content_size_of_unknown_decoded_size(self):
        bound = SizeBound(1 << 20, exact=False)
        data = zstd_frame_without_content_size(TEXT)
        assert bytes(ZstdCodec().bind(bound).decode(data, None)) == TEXT

    def test_checksum_is_written_and_checked(self):
        codec = ZstdCodec(level=1, checksum=True).bind(EXACT)
        data = bytearray(codec.encode(TEXT))
        assert bytes(codec.decode(data, None)) == TEXT
        data[-1] ^= 1
        with pytest.raises(DecodeError):
            codec.decode(data, None)

    @pytest.mark.parametrize("checksum", [False, True])
    @pytest.mark.parametrize("level", [-100, 0, 3, 19])
    @pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1])
    def test_encoding_is_the_same_whichever_package_does_it(self, size, level, checksum):
        """One frame that tells its size, at every level, with a checksum where one is asked for."""
        data = memoryview((TEXT * (size // len(TEXT) + 1))[:size])
        codec = ZstdCodec(level, checksum).bind(SizeBound(size, exact=True))
        encoded = codec.encode(data)
        frame = zstandard.get_frame_parameters(encoded)
        assert (frame.content_size, bool(frame.has_checksum)) == (size, checksum)
        assert len(encoded) < size // 10
        assert codec.decode(encoded, None) == data

    def test_a_frame_of_an_older_format_behind_it_is_not_even_tried(self):
        """Libraries that still read those formats are not made for hostile input there."""
        older = (0xFD2FB527).to_bytes(4, "little") + bytes(20)
        codec = ZstdCodec().bind(EXACT)
        with pytest.raises(DecodeError, match="not a Zstandard frame"):
            codec.decode(numcodecs_zstd.compress(TEXT, 1) + older, None)

    @pytest.mark.parametrize("library", [zstd.libzstd(), None])
    def test_a_large_frame_whichever_library_decodes_it(self, monkeypatch, library):
        large = TEXT * 32
        codec = ZstdCodec(level=1, checksum=True).bind(SizeBound(len(large), exact=True))
        whole = codec.encode(large)
        out = memoryview(bytearray(len(large)))
        longer = SizeBound(len(large) + 1, exact=True)
        monkeypatch.setattr(zstd, "libzstd", lambda: library)

        assert codec.decode(whole, out) is out
        assert bytes(out) == bytes(codec.decode(whole, None)) == large
        halves = zstd_stream(
            numcodecs_zstd.compress(large[:9999], 1), numcodecs_zstd.compress(large[9999:], 1)
        )
        assert bytes(codec.decode(halves, None)) == large
        changed = whole[:-1] + bytes([whole[-1] ^ 1])
        for bad in whole[:-1], whole[:-5], whole + b"junk", changed, whole + whole, b"":
            with pytest.raises(DecodeError):
                codec.decode(bad, out)
        with pytest.raises(DecodeError):
            ZstdCodec().bind(longer).decode(whole, None)


class TestBlosc:
    @pytest.mark.parametrize(("field", "value"), [
        (4, 1 << 31), (4, 0), (4, len(TEXT) + 1), (4, len(TEXT) - 1), (12, 17), (12, 1 << 30),
        (8, 0), (8, 1 << 31), (8, 0xFFFFFFFF), (16, 1 << 30),
    ])  # fmt: skip
    def test_a_header_that_lies(self, field, value):
        """The last one is the offset of a block that lies outside."""
        codec = BloscCodec("lz4", 5, "shuffle", typesize=4).bind(EXACT)
        data = bytearray(codec.encode(TEXT))
        data[field : field + 4] = value.to_bytes(4, "little")
        with pytest.raises(DecodeError):
            codec.decode(data, None)


class TestCrc32c:
    def test_a_known_sum(self):
        """The check value of CRC-32C (RFC 3720, appendix B.4: 32 bytes of zeros)."""
        codec = Crc32cCodec().bind(SizeBound(32, exact=True))
        assert bytes(codec.encode(bytes(32)))[-4:] == bytes.fromhex("aa36918a")


BOMB = 1 << 26


def bombs() -> dict[str, bytes]:
    zeros = bytes(1 << 20)
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    gzip_bomb = b"".join(deflate.compress(zeros) for _ in range(BOMB >> 20)) + deflate.flush()
    one = numcodecs_zstd.compress(zeros, 1)
    return {
        "gzip": gzip_bomb,
        "gzip of many members": gzip.compress(zeros) * (BOMB >> 20),
        "zstd": numcodecs_zstd.compress(np.zeros(BOMB, np.uint8), 1),
        "zstd of many frames": one * (BOMB >> 20),
        "zstd that tells no size": zstd_frame_without_content_size(zeros[:100])
        # A run-length block of the largest size, 512 times.
        + (0xFD2FB528).to_bytes(4, "little") + bytes([0, 0x88])
        + ((0x1FFFF << 3 | 2).to_bytes(3, "little") + b"\0") * 512
        + (1 << 3 | 3).to_bytes(3, "little") + b"\0",
        "blosc": bytes(numcodecs_blosc.compress(np.zeros(BOMB, np.uint8), b"zstd", 5)),
    }  # fmt: skip


CODECS = {
    "gzip": GZIP,
    "zstd": ZstdCodec(),
    "blosc": BloscCodec("lz4", 5, "shuffle"),
}


@pytest.mark.parametrize("bound", [EXACT, ROOMY])
def test_a_bomb_takes_no_more_memory_than_the_chunk(bound):
    for name, bomb in bombs().items():
        codec = CODECS[name.split()[0]].bind(bound)
        with traced() as peak, pytest.raises(DecodeError):
            codec.decode(bomb, None)
        # A copy of the encoded bytes, and the decoded chunk twice.
        assert peak() < len(bomb) + 2 * bound.maximum + (1 << 20), name


# A second copy would be noticed.
NOISE = np.random.default_rng(0).integers(0, 1 << 8, 5 << 20, np.uint8).tobytes()
HALVES = NOISE[: 2 << 20], NOISE[2 << 20 :]
FRUGAL = {
    "gzip": (GZIP, lambda: gzip.compress(NOISE, 1)),
    "gzip of two members": (
        GZIP,
        lambda: b"".join(gzip.compress(h, 1) for h in HALVES),
    ),
    "zlib": (ZLIB, lambda: zlib.compress(NOISE, 1)),
    "zlib of two streams": (
        ZLIB,
        lambda: b"".join(zlib.compress(h, 1) for h in HALVES),
    ),
    "bz2": (Bz2Codec(), lambda: bz2.compress(NOISE, 1)),
    "lzma": (lzma_codec(), lambda: lzma.compress(NOISE, preset=0)),
    "zstd": (ZstdCodec(), lambda: numcodecs_zstd.compress(NOISE, 1)),
    "lz4": (Lz4Codec(), lambda: lz4.compress(NOISE)),
}


@pytest.mark.parametrize("name", FRUGAL)
def test_a_frugal_codec_takes_hardly_any_memory_beside_its_result(name):
    codec, compress = FRUGAL[name]
    data = compress()
    bound = codec.bind(SizeBound(len(NOISE), exact=True))
    assert bound.frugal
    assert not codec.bind(SizeBound(len(NOISE), exact=False)).frugal
    tracemalloc.start()
    try:
        result = bound.decode(data, None)
        _, peak = tracemalloc.get_traced_memory()
        assert bytes(result) == NOISE
        del result
        out = np.empty(len(NOISE), np.uint8).data
        base, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        bound.decode(data, out)
        _, given = tracemalloc.get_traced_memory()
        assert out == NOISE
    finally:
        tracemalloc.stop()
    # A decompressor keeps some input, and returns its output in parts.
    assert peak < len(NOISE) + (3 << 20)
    assert given - base < 3 << 20
