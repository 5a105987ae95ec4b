"""References to the variables of a NetCDF file in one of the classic formats: CDF-1, CDF-2, CDF-5.

https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from zarrfs.store.foreign.found import (
    MOST_REFERENCES,
    Found,
    Shape,
    array_document,
    chunk_key,
    inlined,
    pieces,
    with_types,
)

_TYPES = {
    1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8",
    7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8",
}  # fmt: skip
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_INLINED = 64 << 10


class Variable(NamedTuple):
    """A variable as the header describes it; ``begin`` is the place of its first byte."""

    name: str
    dimensions: Shape
    attributes: dict[str, Any]
    dtype: np.dtype[Any]
    begin: int


@dataclass(slots=True)
class _Header:
    """Reads the parts of a header, one after the other. Raises ValueError at the end of the file.

    wide : bytes of a count.
    far : bytes of a place in the file.
    """

    file: BinaryIO
    size: int
    wide: int = 4
    far: int = 4

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.size:
            raise ValueError("its header has a length that is larger than the file")
        data = self.file.read(count)
        if len(data) < count:
            raise ValueError("it ends in its header")
        return data

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def count(self) -> int:
        return self.number(self.wide)

    def padded(self, count: int) -> bytes:
        data = self.take(count)
        self.take(-count % 4)
        return data

    def name(self) -> str:
        return self.padded(self.count()).decode("utf-8", "replace")

    def items(self, tag: int) -> range:
        found, count = self.number(4), self.count()
        if found not in (0, tag) or (not found and count):
            raise ValueError("its header is not that of a NetCDF file")
        if count > self.size:
            raise ValueError("its header has a length that is larger than the file")
        return range(count)

    def dtype(self) -> np.dtype[Any]:
        number = self.number(4)
        if number not in _TYPES:
            raise ValueError(f"it has values of an unknown type {number}")
        return np.dtype(_TYPES[number])

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        dtypes: dict[str, Any] = {}
        for _ in self.items(_ATTRIBUTES):
            name, dtype = self.name(), self.dtype()
            data = self.padded(self.count() * dtype.itemsize)
            if dtype.kind == "S":
                found[name] = data.decode("utf-8", "replace").rstrip("\0")
            else:
                values = np.frombuffer(data, dtype).tolist()
                found[name] = values[0] if len(values) == 1 else values
                dtypes[name] = dtype
        return with_types(found, dtypes)

    def variable(self) -> Variable:
        name = self.name()
        dimensions = tuple(self.count() for _ in range(self._rank()))
        attributes, dtype = self.attributes(), self.dtype()
        self.count()  # the size in bytes, which may be too large for it
        return Variable(name, dimensions, attributes, dtype, self.number(self.far))

    def _rank(self) -> int:
        rank = self.count()
        if rank > self.size:
            raise ValueError("its header has a length that is larger than the file")
        return rank


def references(path: str) -> Found:
    """Raises OSError, and ValueError for a file that is none."""
    with open(path, "rb") as file:
        return _Translation(path, file).run()


class _Translation:
    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._found = Found()

    def run(self) -> Found:
        header = _Header(self._file, self._size)
        version = header.take(4)[3]
        header.wide = 8 if version == 5 else 4
        header.far = 4 if version == 1 else 8
        records = header.count()
        dimensions = [(header.name(), header.count()) for _ in header.items(_DIMENSIONS)]
        root = {"zarr_format": 3, "node_type": "group", "attributes": header.attributes()}
        self._found.document("", root)
        variables = [header.variable() for _ in header.items(_VARIABLES)]
        for variable in variables:
            if any(number >= len(dimensions) for number in variable.dimensions):
                raise ValueError(
                    f"its variable {variable.name} has a dimension that does not exist"
                )
        in_records = [v for v in variables if v.dimensions and not dimensions[v.dimensions[0]][1]]
        lengths = [math.prod(_row(v, dimensions)) * v.dtype.itemsize for v in in_records]
        # The records of a lone variable follow each other without padding.
        record = sum(length + -length % 4 for length in lengths)
        step = lengths[0] if len(lengths) == 1 else record
        if records == (1 << 8 * header.wide) - 1:  # its writer did not know
            first = min((v.begin for v in in_records), default=self._size)
            records = (self._size - first) // step if step else 0
        for variable in variables:
            at = self._found.name_for("", variable.name.replace("/", "_"))
            try:
                self._variable(at, variable, dimensions, records, step)
            except ValueError as error:
                self._found.note(at, str(error))
        return self._found

    def _variable(
        self,
        at: str,
        variable: Variable,
        dimensions: list[tuple[str, int]],
        records: int,
        step: int,
    ) -> None:
        item = variable.dtype.itemsize
        recorded = bool(variable.dimensions) and not dimensions[variable.dimensions[0]][1]
        row = _row(variable, dimensions) if recorded else ()
        shape = (
            (records, *row) if recorded else tuple(dimensions[i][1] for i in variable.dimensions)
        )
        size = math.prod(row) * item if recorded else math.prod(shape) * item
        interleaved = recorded and step != size
        end = variable.begin + (step * (records - 1) if recorded else 0) + size
        nbytes = math.prod(shape) * item
        if nbytes and end > self._size:
            raise ValueError("the file ends before its data do")
        refs: dict[Shape, Any] = {}
        chunk: list[Any] = [max(1, length) for length in shape]
        if interleaved and nbytes <= _INLINED:
            fd = self._file.fileno()
            parts = [os.pread(fd, size, variable.begin + i * step) for i in range(records)]
            refs = {(0,) * len(shape): inlined(b"".join(parts))} if nbytes else {}
        elif interleaved:
            if records > MOST_REFERENCES:
                raise ValueError(f"it has more than {MOST_REFERENCES} records")
            chunk[0] = 1
            more = (0,) * len(row)
            for i in range(records if size else 0):
                refs[(i, *more)] = [self._path, variable.begin + i * step, size]
        elif nbytes:
            chunk, refs = pieces(self._path, shape, item, variable.begin)
        is_text = variable.dtype.kind == "S"
        text = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}}
        document = array_document(
            shape,
            text if is_text else variable.dtype.name,
            chunk,
            [{"name": "bytes", "configuration": {"endian": "big"}}],
            "" if is_text else 0,
            variable.attributes,
        )
        document["dimension_names"] = [dimensions[i][0] for i in variable.dimensions]
        self._found.document(at, document)
        for index, place in refs.items():
            self._found.refs[f"{at}/{chunk_key(index)}"] = place


def _row(variable: Variable, dimensions: list[tuple[str, int]]) -> Shape:
    return tuple(dimensions[number][1] for number in variable.dimensions[1:])
