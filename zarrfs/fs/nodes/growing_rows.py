"""Where the flat files of an array end that may grow and shrink along its first axis.

A file that is appended to may end within a row. Stored are whole rows at any time, the
last one filled up with fill value, and that is what all other views show; the file itself
grows by what was written, and ends with a whole row when nobody has it open for writing
any more. So programs that append in pieces, whatever their size, continue where they were.
"""

from __future__ import annotations

import math
from io import BytesIO

import numpy as np

from zarrfs.array.node_readers import Node
from zarrfs.cache.write.growth import Growth
from zarrfs.errors import FileTooLarge
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.loop.gate import Gate


class GrowingRows:
    """The rows of one array. Loop only, where nothing else is said.

    shape : of one row.
    header : bytes before the elements in ``array.npy``.

    gate : tasks that change elements are inside, a task that shrinks the array is alone.
    """

    def __init__(self, growth: Growth, shape: Shape, item_size: int, header: int) -> None:
        self.growth = growth
        self.gate = Gate()
        self.row_bytes = math.prod(shape) * item_size
        self.header = header
        self._missing: dict[int, int] = {}
        self._reported = growth.rows

    @property
    def count(self) -> int:
        return self.growth.rows

    @property
    def end(self) -> int:
        """Bytes of all rows."""
        return self.count * self.row_bytes

    @property
    def settled(self) -> bool:
        """Whether the stored metadata say the same, and no file ends within a row."""
        return self.growth.rows == self.growth.stored and not self._missing

    def as_shown(self, node: Node) -> Node:
        """A node just read, with the rows that are not in its metadata yet."""
        metadata = node.metadata
        if not isinstance(metadata, ArrayMetadata) or metadata.shape[:1] != (self.growth.stored,):
            return node
        shape = (self.count, *metadata.shape[1:])
        return node._replace(metadata=metadata._replace(shape=shape))

    def missing(self, local: int) -> int:
        """Bytes by which a file ends before its last row does."""
        return self._missing.get(local, 0)

    def needed(self, stop: int) -> int:
        """Rows that hold the elements' bytes up to ``stop``. Raises FileTooLarge."""
        rows = -(-stop // self.row_bytes)
        if rows > self.growth.largest:
            raise FileTooLarge(f"the array can have {self.growth.largest} rows at most")
        return rows

    def extend(self, local: int, stop: int) -> None:
        """A file is written up to byte ``stop`` of its elements; there must be room."""
        rows = self.needed(stop)
        if rows > self.count:
            self.growth.grow(rows)
            # Files that ended within what was the last row do so no more.
            self._missing.clear()
            self._set_missing(local, self.end - stop)
        elif local in self._missing:
            self._set_missing(local, min(self._missing[local], self.end - stop))

    def take_back(self, local: int, count: int, missing: int) -> None:
        """Undo the last `extend`."""
        self.growth.set_rows(count)
        self._set_missing(local, missing)

    def complete(self, local: int) -> bool:
        """A file ends with its last row from now on; whether it did not before."""
        return self._missing.pop(local, 0) > 0

    def take_rows_changed(self) -> bool:
        """Whether the number of rows is another one than at the last call."""
        before, self._reported = self._reported, self.count
        return before != self._reported

    def complete_all(self) -> None:
        self._missing.clear()

    def _set_missing(self, local: int, missing: int) -> None:
        self._missing.pop(local, None)
        if missing:
            self._missing[local] = missing


def rows_in_header(header: bytes) -> int | None:
    """The length of the first axis that the header of an NPY file tells; None if it is none."""
    try:
        file = BytesIO(header)
        np.lib.format.read_magic(file)
        shape, _, _ = np.lib.format.read_array_header_1_0(file)
    except ValueError:
        return None
    return shape[0] if shape else None
