"""Reads an array of chunks of one byte; prints the bytes of memory that this took.

Arguments: a directory, the array's shape, that of a chunk, bytes to read, `-o memory=`.
"""

import os
import re
import sys
from pathlib import Path

from tests.fs.documents import array_document
from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore

_BLOCK = 1 << 15


def peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def main() -> None:
    root, size, memory = sys.argv[1], *map(int, sys.argv[4:])
    shape, chunk = (tuple(map(int, text.split("x"))) for text in sys.argv[2:4])
    document = array_document(shape, chunk, data_type="uint8", fill_value=7)
    Path(root, "zarr.json").write_bytes(document)
    mount = Mounted(Loop(), LocalStore(root), FileSystemConfig(memory=memory))
    before = peak()
    file = mount.open("array.bin")
    for offset in range(0, size, _BLOCK):
        wanted = min(_BLOCK, size - offset)
        assert file.read(offset, wanted) == b"\7" * wanted
    print(peak() - before, flush=True)
    # Its threads wait for nothing.
    os._exit(0)


if __name__ == "__main__":
    main()
