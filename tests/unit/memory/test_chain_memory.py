"""Chains of codecs whose stages decode to more than they should take no more than their charge."""

from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document
from tests.fs.memory_store import MemoryStore
from tests.traced import traced
from zarrfs.errors import DecodeError
from zarrfs.format.pipeline import ChunkCodec, encode_bytes

NBYTES = 4 << 20
SHAPE = (NBYTES,)
# A part of the output, as decompressors of Python's return it, and what it grew from.
SLACK = 3 << 20


def _codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


BLOSC = _codec("blosc", cname="lz4", clevel=1, shuffle="noshuffle", typesize=1, blocksize=0)
BZ2 = _codec("numcodecs.bz2", level=1)
CHAINS = [
    *map(list, product([GZIP, ZSTD, BLOSC, BZ2], repeat=2)),
    [GZIP], [ZSTD], [BLOSC], [GZIP] * 5, [ZSTD, CRC32C, GZIP, CRC32C, GZIP],
    [_codec("numcodecs.shuffle", elementsize=4), GZIP], [_codec("numcodecs.zlib", level=1), ZSTD],
    [_codec("numcodecs.lz4", acceleration=1), ZSTD, GZIP],
]  # fmt: skip


def _decoded(codec: ChunkCodec, stage: int) -> int:
    """The most bytes that a stage may decode to."""
    before = codec.bytes_bytes[stage - 1].encoded if stage else codec.array_bytes.encoded
    return before.maximum


@pytest.mark.parametrize("codecs", CHAINS, ids=lambda codecs: "-".join(c["name"] for c in codecs))
def test_a_stage_that_lies_takes_no_more_than_its_charge(codecs):
    document = array_document(
        SHAPE, SHAPE, data_type="uint8", fill_value=0, codecs=[LITTLE, *codecs]
    )
    array = open_array(MemoryStore({"zarr.json": document}), memory=256 << 20)
    codec = array.layout.chunk_codec(SHAPE)
    peaks = []
    for stage, excess in product(range(len(codecs)), (0, 8, NBYTES)):
        # As much as the stage may decode to, or more.
        payload = bytes(_decoded(codec, stage) // 8 * 8 + excess)
        stored = bytes(encode_bytes(codec.bytes_bytes[stage:], payload))
        assert len(stored) <= array.decoder.longest(SHAPE)
        del payload
        with traced() as peak, suppress(DecodeError):
            codec.decode(stored)
        peaks.append(peak())
    assert max(peaks) <= array.decoder.cost(SHAPE) - array.decoder.longest(SHAPE) + SLACK
