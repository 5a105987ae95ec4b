"""Writes through two mounts of one array in every way that programs have, until a mount is gone.

Arguments: the directories of the array in both mounts. Prints ``w ROW VALUE`` before it fills a
row of the array with a value, and ``s ROW…`` when the call that acknowledges these rows has
returned 0. Each row is written once.
"""

import errno
import mmap
import os
import signal
import sys
from itertools import count

ROWS = 64
ROW = 4096
"""Bytes of a row, which is a page, because between two mounts the page is the unit."""


class Writer:
    def __init__(self, first: str, second: str) -> None:
        self.values = count(1)
        self.rows = iter(range(ROWS))
        self.first, self.second = first, second

    def open(self, directory: str, name: str = "array.bin") -> int:
        return os.open(os.path.join(directory, name), os.O_RDWR)

    def write(self, file: int, start: int = 0) -> int:
        """Fill the next row; which that is."""
        row = next(self.rows)
        os.pwrite(file, self.value(row), start + row * ROW)
        return row

    def value(self, row: int) -> bytes:
        value = next(self.values)
        tell("w", row, value)
        return value.to_bytes(4, "little") * (ROW // 4)

    def run(self) -> None:
        file, other = self.open(self.first), self.open(self.second)
        row, by_other = self.write(file), self.write(other)
        os.fsync(file)
        tell("s", row)
        os.fsync(other)
        tell("s", by_other)
        self.with_copy()
        self.with_child()
        self.with_mapping()
        self.with_two_mappings()
        self.with_two_views(other)
        rows = [self.write(file), self.write(file)]
        os.close(file)
        tell("s", *rows)
        row = self.write(other)
        os.close(other)
        tell("s", row)

    def with_copy(self) -> None:
        """The close of one of two descriptors is told of what was written through both."""
        file = self.open(self.first)
        copy = os.dup(file)
        rows = [self.write(file), self.write(copy)]
        os.close(copy)
        tell("s", *rows)
        row = self.write(file)
        os.close(file)
        tell("s", row)

    def with_child(self) -> None:
        """A child has the descriptor, too, and ends while the parent closes it."""
        file = self.open(self.first)
        rows = [self.write(file) for _ in range(4)]
        child = os.fork()
        if not child:
            os._exit(0)
        os.close(file)
        tell("s", *rows)
        os.waitpid(child, 0)

    def with_mapping(self) -> None:
        file = self.open(self.first)
        with mmap.mmap(file, 0, mmap.MAP_SHARED) as mapped:
            row = self.map(mapped)
            mapped.flush()
            tell("s", row)
        os.close(file)

    def with_two_mappings(self) -> None:
        """What is written through both is stored when one file is synced, however it gets there."""
        files = [self.open(self.first), self.open(self.first)]
        maps = [mmap.mmap(file, 0, mmap.MAP_SHARED) for file in files]
        rows = [self.map(mapped) for mapped in maps]
        os.fsync(files[0])
        tell("s", *rows)
        for file, mapped in zip(files, maps, strict=True):
            mapped.close()
            os.close(file)

    def with_two_views(self, other: int) -> None:
        """Through two files of one mount, and beside it through the other mount."""
        file = self.open(self.first)
        npy = self.open(self.first, "array.npy")
        start = os.fstat(npy).st_size - os.fstat(file).st_size
        rows = [self.write(file), self.write(npy, start)]
        by_other = self.write(other)
        os.fsync(npy)
        os.fsync(file)
        tell("s", *rows)
        os.fsync(other)
        tell("s", by_other)
        os.close(npy)
        os.close(file)

    def map(self, mapped: mmap.mmap) -> int:
        row = next(self.rows)
        mapped[row * ROW : (row + 1) * ROW] = self.value(row)
        return row


def tell(what: str, *numbers: int) -> None:
    os.write(1, f"{what} {' '.join(map(str, numbers))}\n".encode())


if __name__ == "__main__":
    # Of a mapping whose mount is gone.
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    try:
        Writer(*sys.argv[1:]).run()
        tell("done")
    except OSError as error:
        if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT):
            raise
