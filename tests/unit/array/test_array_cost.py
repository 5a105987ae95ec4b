"""What a load takes in memory is what it was charged, whatever the codecs."""

import gzip
from contextlib import closing

import google_crc32c
import numcodecs
import numpy as np
import pytest

from tests.fs.arrays import open_array
from tests.fs.documents import GZIP, LITTLE, ZSTD, array_document
from tests.traced import traced
from zarrfs.store.local.local import LocalStore

BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
SHAPE = (4 << 20,)
NOISE = np.random.default_rng(0).integers(0, 1 << 16, SHAPE, np.uint16)


def encoded(codecs) -> bytes:
    data = NOISE.astype(">u2" if codecs[0] is BIG else "<u2").tobytes()
    for codec in codecs[1:]:
        if codec is CRC:
            data += google_crc32c.value(data).to_bytes(4, "little")
        elif codec is GZIP:
            data = gzip.compress(data, 1)
        else:
            data = bytes(numcodecs.Zstd(1).encode(data))
    return data


@pytest.mark.parametrize(
    ("codecs", "copies"),
    [
        ([LITTLE, GZIP], 1),
        ([LITTLE, ZSTD], 1),
        ([LITTLE, ZSTD, CRC], 1),
        ([LITTLE, CRC], 1),
        ([BIG, GZIP], 2),
        # Zstandard may decode to twice the chunk, and holds that twice.
        ([LITTLE, GZIP, ZSTD], 4),
    ],
    ids=str,
)
def test_loading_a_chunk_takes_no_more_memory_than_it_costs(tmp_path, codecs, copies):
    data = encoded(codecs)
    (tmp_path / "c").mkdir()
    (tmp_path / "c/0").write_bytes(data)
    document = array_document(SHAPE, SHAPE, data_type="uint16", codecs=codecs)
    (tmp_path / "zarr.json").write_bytes(document)
    store = LocalStore(tmp_path)
    array = open_array(store, memory=256 << 20)
    del document
    with closing(store), traced() as peak:
        # Where a chunk is decoded through a copy, pages of this memory are never touched.
        memory = (lambda _: np.empty(NOISE.nbytes, np.uint8).data) if copies == 1 else None
        (result,) = array.read_chunks([(0,)], memory)
    assert (result.chunk == NOISE).all()
    # A compressor may add 64 KiB.
    beside = array.decoder.cost(SHAPE) - array.decoder.longest(SHAPE)
    assert copies * NOISE.nbytes <= beside <= copies * NOISE.nbytes + (128 << 10)
    # The stored bytes are not twice as many as the elements, as they might be.
    spare = array.decoder.longest(SHAPE) - len(data)
    assert peak() <= array.decoder.cost(SHAPE) - spare + (3 << 20)


@pytest.mark.parametrize("codec", [GZIP, ZSTD], ids=str)
def test_a_chunk_of_one_element_costs_some_kib(tmp_path, codec):
    """Otherwise a budget has room for few of them at once, and each shard is read many times."""
    document = array_document((9,), (1,), data_type="float64", codecs=[LITTLE, codec])
    (tmp_path / "zarr.json").write_bytes(document)
    assert open_array(LocalStore(tmp_path)).decoder.cost((1,)) < 6 << 10
