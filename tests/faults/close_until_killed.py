"""Writes to an array through several descriptors, copies and mappings of them, and closes them.

Arguments: the directory of an array of two-byte elements, and where its elements begin in
``array.npy``. Prints ``w FILE ELEMENT VALUE`` before it changes an element through a file, and
``s FILE`` when `fsync` or `close` has said that what was written to the file is stored.
"""

import mmap
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

# Of the whole array, and of a chunk of it: elements in a row.
WIDTH, CHUNK_WIDTH, CHUNK_ROWS = 16, 8, 4


class Program:
    """Each element that it changes gets a value that no other one has."""

    def __init__(self, directory: str, npy_start: int) -> None:
        self._directory = directory
        self._starts = {"array.npy": npy_start}
        self._values = count(1)

    def open(self, name: str, flags: int = os.O_RDWR) -> int:
        return os.open(os.path.join(self._directory, name), flags)

    def write(self, file: int, name: str, *elements: int) -> None:
        for element in elements:
            os.pwrite(file, self._told(name, element), self._place(name, element))

    def change(self, mapped: mmap.mmap, name: str, *elements: int) -> None:
        for element in elements:
            place = self._place(name, element)
            mapped[place : place + 2] = self._told(name, element)

    def stored(self, name: str) -> None:
        os.write(1, f"s {name}\n".encode())

    def close(self, file: int, name: str) -> None:
        os.close(file)
        self.stored(name)

    def sync(self, file: int, name: str) -> None:
        os.fsync(file)
        self.stored(name)

    def _told(self, name: str, element: int) -> bytes:
        value = next(self._values)
        os.write(1, f"w {name} {element} {value}\n".encode())
        return value.to_bytes(2, "little")

    def _place(self, name: str, element: int) -> int:
        row, column = divmod(element, WIDTH)
        if not name.startswith("chunks"):
            return self._starts.get(name, 0) + 2 * element
        _, i, j = name.split("/")
        row, column = row - int(i) * CHUNK_ROWS, column - int(j) * CHUNK_WIDTH
        return 2 * (row * CHUNK_WIDTH + column)


def copies(program: Program) -> None:
    """Copies of a descriptor are closed, one after the other and at the same moment."""
    name = "array.bin"
    file = program.open(name)
    copy = os.dup(file)
    program.write(file, name, 0, 8, 64, 72)
    program.close(copy, name)
    program.write(file, name, 1, 9, 65)
    with ThreadPoolExecutor(3) as pool:
        for each in (file, os.dup(file), os.dup(file)):
            pool.submit(_quietly, program.close, each, name)


def children(program: Program) -> None:
    """A child writes through what it has inherited, and exits; its parent closes."""
    name = "array.npy"
    file = program.open(name)
    program.write(file, name, 2, 10)
    child = os.fork()
    if child == 0:
        _quietly(program.write, file, name, 66, 74)
        os._exit(0)
    os.waitpid(child, 0)
    # The child counted for itself.
    program._values = count(next(program._values) + 2)
    program.write(file, name, 3)
    program.close(file, name)


def mappings(program: Program) -> None:
    """Two descriptors of a file, both mapped, and one of another view, which cannot be mapped."""
    name = "array.bin"
    files = [program.open(name) for _ in range(2)]
    other = program.open("chunks/0/0")
    mapped = [mmap.mmap(file, 0) for file in files]
    program.change(mapped[0], name, 4, 76)
    program.write(other, "chunks/0/0", 5, 21)
    program.write(files[1], name, 6, 70)
    mapped[0].close()
    program.close(files[0], name)
    program.change(mapped[1], name, 7, 71)
    program.write(other, "chunks/0/0", 22)
    program.sync(other, "chunks/0/0")
    program.sync(files[1], name)
    program.write(other, "chunks/0/0", 23)
    program.close(other, "chunks/0/0")
    mapped[1].close()
    program.close(files[1], name)


def chunks(program: Program) -> None:
    """Descriptors that can only be written to, of a file that another one maps."""
    bystander = program.open("array.npy")
    mapped = mmap.mmap(bystander, 0)
    program.change(mapped, "array.npy", 12)
    name = "chunks/0/1"
    file = program.open(name, os.O_WRONLY)
    program.write(file, name, 8, 9, 24)
    program.close(file, name)
    program.change(mapped, "array.npy", 13)
    mapped.close()
    program.close(bystander, "array.npy")


def _quietly(call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    its = Program(sys.argv[1], int(sys.argv[2]))
    for part in (copies, children, mappings, chunks):
        _quietly(part, its)
    os._exit(0)
