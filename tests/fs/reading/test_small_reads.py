"""Reads here and there: what is decoded for them, and what the kernel is given."""

import numpy as np
import pytest

from tests.fs.documents import array_document
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.waiting import wait_until

MIB = 1 << 20
ROWS, ROW = 48, 1 << 16


@pytest.fixture
def volume(mount):
    """Chunks that lie all over the file; two rows of them, of 4 MiB each."""
    values = np.random.default_rng(1).integers(0, 256, (128, 256, 256), np.uint8)
    document = array_document(values.shape, (64, 64, 64), data_type="uint8")
    objects = {
        f"c/{i}/{j}/{k}": values[
            64 * i : 64 * i + 64, 64 * j : 64 * j + 64, 64 * k : 64 * k + 64
        ].tobytes()
        for i in range(2)
        for j in range(4)
        for k in range(4)
    }
    m = mount(FaultStore(MemoryStore({"zarr.json": document, **objects}), near=True))
    return m, values.tobytes()


def test_a_page_with_what_is_around_it_is_no_scan(volume):
    """As the kernel asks for a page of a mapping: each chunk is decoded once, and stays."""
    m, content = volume
    file = m.open("array.bin")
    for start in (3 * MIB + 4096, 6 * MIB + 8192, MIB + 4096, 5 * MIB - 4096, 3 * MIB + 12288):
        assert file.read(start, MIB) == content[start : start + MIB]
    assert m.stats()["cache"]["loads"] == 32


def test_whoever_goes_on_scans(volume):
    m, content = volume
    file = m.open("array.bin")
    for start in range(MIB, 4 * MIB, MIB):
        assert file.read(start, MIB) == content[start : start + MIB]
    # The next row of chunks is made ahead, and none of it stays chunk by chunk.
    wait_until(lambda: m.stats()["cache"]["loads"] >= 32)
    assert m.stats()["memory"]["chunks"] == 0
