"""The most bytes to which a zstd stream can decode."""

from itertools import product

import numcodecs
import numpy as np
import pytest

from zarrfs.bounds import OutOfBoundsError
from zarrfs.store.remote.icechunk.metadata_files import most_decoded

MIB = 1 << 20
BLOCK = 128 << 10
MAGIC = bytes.fromhex("28b52ffd")
NO_SIZE = bytes([0, 0x58])
"""The header of a frame with a window of 2 MiB, which does not say how much it holds."""


def rle(count: int, *, last: bool = True) -> bytes:
    """Blocks that repeat a byte, each of 128 KiB once decoded."""
    block = (BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    end = (BLOCK << 3 | 1 << 1 | last).to_bytes(3, "little") + b"x"
    return block * (count - 1) + end


@pytest.mark.parametrize("size", [0, 1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * MIB + 5])
def test_what_zstd_makes(size):
    random = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    for zeros, checksum, frames in product((0, size // 2, size), (False, True), (1, 3)):
        random[:zeros] = 0
        data = numcodecs.Zstd(3, checksum=checksum).encode(random)
        most = most_decoded(memoryview(data * frames), 1 << 40)
        fits = frames * size <= most <= frames * (size + 2 * BLOCK)
        assert fits, (zeros, checksum, frames)


def test_what_can_be_decoded_is_what_is_counted():
    data = MAGIC + NO_SIZE + rle(9)
    assert most_decoded(memoryview(data), 1 << 40) == 9 * BLOCK
    assert len(numcodecs.Zstd().decode(data, np.empty(9 * BLOCK, np.uint8))) == 9 * BLOCK


def test_a_stream_of_few_bytes_that_decodes_to_many():
    data = MAGIC + NO_SIZE + rle(1 << 15)
    assert len(data) < 140_000
    assert most_decoded(memoryview(data), 1 << 40) == 4 << 30
    # No further than needed.
    assert most_decoded(memoryview(data), MIB) == MIB + BLOCK


def test_skippable_frames_hold_nothing():
    skippable = bytes.fromhex("502a4d18") + (5).to_bytes(4, "little") + b"12345"
    data = skippable + MAGIC + NO_SIZE + rle(2) + skippable
    assert most_decoded(memoryview(data), 1 << 40) == 2 * BLOCK


@pytest.mark.parametrize("cut", [0, 3, 4, 5, 6, 8, 10, 11])
def test_a_stream_that_breaks_off(cut):
    data = (MAGIC + NO_SIZE + rle(2))[:cut]
    if 0 < cut < 4:
        with pytest.raises(OutOfBoundsError):
            most_decoded(memoryview(data), 1 << 40)
    else:
        assert most_decoded(memoryview(data), 1 << 40) <= 2 * BLOCK


@pytest.mark.parametrize("before", [b"", MAGIC + NO_SIZE + rle(1)], ids=["first", "second"])
def test_other_formats_are_refused(before):
    """Such as the older ones of zstd, which libraries still know."""
    with pytest.raises(OutOfBoundsError, match="zstd alone"):
        most_decoded(memoryview(before + bytes.fromhex("27b52ffd") + bytes(100)), 1 << 40)
