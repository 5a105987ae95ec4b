"""Readers that scan, skip and go back, several at once, within any budget."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from tests.soak import EXHAUSTIVE

pytestmark = pytest.mark.timeout(120)

SHAPES = [
    # Planes, rows of chunks, one row of chunks, overhang on all axes.
    ((40, 256, 256), (8, 64, 64), None),
    ((41, 250, 130), (7, 64, 60), (14, 128, 120)),
    ((3_000_001,), (100_000,), (400_000,)),
    ((1, 700, 3000), (1, 50, 3000), None),
    ((600, 1500), (600, 7), None),
    # A row of chunks that is more than the least of the budgets.
    ((33, 300, 520), (16, 64, 64), (32, 128, 128)),
]  # fmt: skip


WAYS = [("C", 3 << 20), ("F", 3 << 20), ("F", 200 << 20), ("C", 12 << 20)]


@pytest.mark.soak
@pytest.mark.parametrize(("shape", "order", "memory"), [
    (shape, *how)
    for number, shape in enumerate(SHAPES)
    for place, how in enumerate(WAYS)
    if EXHAUSTIVE or (number + place) % 2
])  # fmt: skip
def test_in_any_way(mount, tmp_path, shape, order, memory):
    shape, chunks, shards = shape
    numbers = np.arange(np.prod(shape), dtype="<u4").astype("<u2").reshape(shape)
    zarr.create_array(
        tmp_path / "a", data=numbers, chunks=chunks, shards=shards,
        compressors=zarr.codecs.ZstdCodec(level=1), fill_value=7,
    )  # fmt: skip
    whole = numbers.tobytes(order=order)
    m = mount(tmp_path / "a", order=order, memory=memory, spill=str(tmp_path))
    wrong = []

    def check(file, offset, size, content):
        if file.read(offset, size) != content[offset : offset + size]:
            wrong.append((offset, size))

    def read(seed):
        choose = random.Random(seed)
        npy = seed % 2
        file = m.open("array.npy" if npy else "array.bin")
        content = m_npy if npy else whole
        offset = 0
        for _ in range(40):
            size = choose.choice((4096, 1 << 17, 1 << 17, 100_003))
            check(file, offset, size, content)
            step = choose.random()
            if step < 0.03:
                offset = choose.randrange(len(content))
            elif step < 0.1:
                # Requests of one reader may come out of order.
                check(file, offset + 2 * size, size, content)
            offset = (offset + size) % (len(content) + 1)
        file.close()

    m_npy = m.read("array.npy", 1 << 20)
    assert m_npy.endswith(whole)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(read, range(3)))
    assert wrong == []
    assert m.stats()["memory"]["highest"] <= memory
    assert m.errors() == []
