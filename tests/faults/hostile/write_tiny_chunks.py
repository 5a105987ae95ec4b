"""Writes an array of chunks of eight bytes; prints the bytes of memory that this took.

Arguments: a directory, bytes to write, inner chunks in a shard (0: none), `-o memory=`.
"""

import os
import sys
from pathlib import Path

import numpy as np

from tests.faults.hostile.read_tiny_chunks import peak
from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.loop import Loop
from tests.fs.writable import Writable
from zarrfs.store.local.local import LocalStore

_BLOCK = 1 << 17


def main() -> None:
    root, size, members, memory = sys.argv[1], *map(int, sys.argv[2:])
    codecs = [sharding((4,))] if members else [LITTLE]
    document = array_document((size // 2,), (4 * max(1, members),), codecs=codecs)
    Path(root, "zarr.json").write_bytes(document)
    mount = Writable(Loop(), LocalStore(root), memory=memory, flush_delay=3600.0)
    before = peak()
    data = np.random.default_rng(0).bytes(size)
    file = mount.edit("array.bin")
    for offset in range(0, size, _BLOCK):
        file.write(offset, data[offset : offset + _BLOCK])
    file.fsync()
    budget = mount.write_back.budget
    assert budget.highest <= budget.total, (budget.highest, budget.total)
    print(peak() - before, flush=True)
    # What is not compressed lies in a shard as it does in the array.
    length = 8 * max(1, members)
    for number, start in enumerate(range(0, size, length)):
        stored = Path(root, "c", str(number)).read_bytes()
        assert stored[:length] == data[start : start + length], number
    # Its threads wait for nothing.
    os._exit(0)


main()
