"""Parts of Blosc containers, decoded without the other blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.errors import DecodeError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs.blosc import BloscCodec
from zarrfs.format.codecs.blosc_header import HEADER, Header

COMPRESSORS = ("lz4", "lz4hc", "blosclz", "zlib", "zstd", "snappy")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
STEPS = (np.arange(50_001, dtype="<u4") // 64).tobytes()[:-1]
NOISE = np.random.default_rng(0).bytes(50_000)
CONTENTS = {"steps": STEPS, "noise": NOISE, "both": NOISE[:30_000] + STEPS[:30_001]}

bounded = examples(300)


def container(plain, cname="zstd", shuffle="shuffle", typesize=4, blocksize=0, clevel=5):
    codec = BloscCodec(cname, clevel, shuffle, blocksize, typesize)
    bound = codec.bind(SizeBound(len(plain), exact=True))
    return bound, bytes(bound.encode(plain))


def decode(bound, data, start, stop):
    """The wanted bytes, from the ranges alone; None if the part cannot be found."""
    part = bound.part(data, len(data), start, stop)
    if part is None:
        return None
    assert part.first <= start < stop <= part.first + part.nbytes
    decoded = part.decode([data[at : at + length] for at, length in part.ranges])
    assert len(decoded) == part.nbytes
    return bytes(memoryview(decoded)[start - part.first : stop - part.first])


@bounded
@given(
    st.sampled_from([*CONTENTS]),
    st.sampled_from(COMPRESSORS),
    st.sampled_from(SHUFFLES),
    st.sampled_from((1, 2, 3, 4, 8, 16, 17, 100)),
    st.sampled_from((0, 128, 1000, 4096, 10_000, 65_536)),
    st.sampled_from((1, 5, 9)),
    st.data(),
)
def test_a_part_is_that_of_the_whole(content, cname, shuffle, typesize, blocksize, clevel, draw):
    plain = CONTENTS[content]
    bound, data = container(plain, cname, shuffle, typesize, blocksize, clevel)
    assert bytes(bound.decode(data, None)) == plain
    start = draw.draw(st.integers(0, len(plain) - 1))
    stop = draw.draw(st.integers(start + 1, min(len(plain), start + 20_000)))
    assert decode(bound, data, start, stop) == plain[start:stop]
    assert decode(bound, data, len(plain) - 1, len(plain)) == plain[-1:]


def test_only_the_blocks_that_are_wanted_are_read():
    bound, data = container(STEPS, blocksize=4096)
    part = bound.part(data[: bound.head], len(data), 10_000, 10_010)
    assert (part.first, part.nbytes) == (8192, 4096)
    assert sum(length for _, length in part.ranges) < len(data) // 20


def test_a_container_that_is_not_compressed_needs_only_the_bytes():
    bound, data = container(NOISE)
    part = bound.part(data[: bound.head], len(data), 100, 110)
    assert part.ranges == [(116, 10)]
    assert bytes(part.decode([data[116:126]])) == NOISE[100:110]


def test_blocks_may_lie_in_any_order():
    bound, data = container(STEPS, blocksize=4096)
    header = Header(*HEADER.unpack_from(data))
    count = len(header.offsets)
    offsets = np.frombuffer(data, "<u4", count, HEADER.size).tolist()
    ends = [*offsets[1:], len(data)]
    blocks = [data[a:b] for a, b in zip(offsets, ends, strict=True)]
    mixed, places = b"", [0] * count
    for number in np.random.default_rng(0).permutation(count):
        places[number] = header.offsets.stop + len(mixed)
        mixed += blocks[number]
    data = data[: HEADER.size] + np.array(places, "<u4").tobytes() + mixed
    assert bytes(bound.decode(data, None)) == STEPS
    for start in range(0, len(STEPS) - 5000, 3001):
        assert decode(bound, data, start, start + 5000) == STEPS[start : start + 5000]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda d: d[:10], id="no header"),
        pytest.param(lambda d: d[:-1], id="cut"),
        pytest.param(lambda d: d + b"0", id="longer"),
        pytest.param(lambda d: b"\x03" + d[1:], id="version"),
        pytest.param(lambda d: d[:8] + bytes(4) + d[12:], id="block size"),
        pytest.param(lambda d: d[:4] + b"\xff" + d[5:], id="decoded size"),
        pytest.param(lambda d: d[:24] + bytes(4) + d[28:], id="offset in the header"),
        pytest.param(lambda d: d[:24] + b"\xff" * 4 + d[28:], id="offset behind the end"),
    ],
)
def test_of_a_damaged_container_no_part_is_found(damage):
    bound, data = container(STEPS, blocksize=4096)
    data = damage(data)
    assert bound.part(data[: bound.head], len(data), 10_000, 10_010) is None


@bounded
@given(st.binary(min_size=1, max_size=40), st.integers(0, 3000), st.integers(0, len(STEPS) - 10))
def test_whatever_is_damaged_nothing_else_is_read_or_raised(noise, at, start):
    bound, data = container(STEPS, blocksize=4096)
    at %= len(data) - len(noise)
    data = data[:at] + noise + data[at + len(noise) :]
    part = bound.part(data[: bound.head], len(data), start, start + 10)
    if part is None:
        return
    assert all(16 <= at < at + length <= len(data) for at, length in part.ranges)
    assert sum(length for _, length in part.ranges) <= part.nbytes + 64 * len(part.ranges)
    try:
        decoded = part.decode([data[at : at + length] for at, length in part.ranges])
    except DecodeError:
        return
    assert len(decoded) == part.nbytes


def test_a_head_without_all_offsets_is_not_enough():
    bound, data = container(STEPS * 30, blocksize=1024)
    assert bound.part(data[: bound.head], len(data), 10, 20) is None
    assert bound.part(data, len(data), 10, 20) is not None


def test_chunks_of_unknown_size_have_no_parts():
    assert BloscCodec("lz4", 5, "shuffle").bind(SizeBound(100, exact=False)).head == 0
