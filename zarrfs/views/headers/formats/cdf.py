"""netCDF's classic format with 64-bit data (CDF-5).

https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html. Its numbers are
big-endian.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from zarrfs.views.headers.attributes import (
    TypedAttribute,
    coordinates,
    dimension_names,
    typed_attributes,
)
from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import Form, Plan

_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_ABSENT = struct.pack(">iq", 0, 0)
_CHAR, _DOUBLE = 2, 6
TYPES = {
    "b1": 7,
    "i1": 1,
    "u1": 7,
    "i2": 3,
    "i4": 4,
    "f4": 5,
    "f8": _DOUBLE,
    "u2": 8,
    "u4": 9,
    "i8": 10,
    "u8": 11,
}


def nc(array: Described) -> Plan:
    """A variable of any shape, with a coordinate variable for each axis with a spacing."""
    kind = array.type_in(TYPES, "CDF-5")
    array.check("CDF-5", 0, 1024, longest=2**63 - 1)
    return partial(_form, array, kind)


def _form(array: Described, kind: int) -> Form:
    names = dimension_names(array.axes, array.name)
    scales = [
        (i, values)
        for i, axis in enumerate(array.axes)
        if (values := coordinates(axis)) is not None
    ]
    dimensions = b"".join(
        _name(name) + struct.pack(">q", axis.length)
        for name, axis in zip(names, array.axes, strict=True)
    )
    variables = [(names[i], [i], _unit(array.axes[i]), _DOUBLE, v.nbytes) for i, v in scales]
    attributes = _attributes(typed_attributes(array))
    every = list(range(len(names)))
    variables.append((array.name, every, attributes, kind, -(-array.nbytes // 4) * 4))
    begins = [0] * len(variables)
    for _ in range(2):  # where the data begin is known once the header's size is
        header = b"CDF\x05" + struct.pack(">q", 0)
        header += _list(_DIMENSIONS, len(names), dimensions) + _ABSENT
        header += _list(
            _VARIABLES,
            len(variables),
            b"".join(_variable(*v, begin) for v, begin in zip(variables, begins, strict=True)),
        )
        begin = -(-len(header) // 64) * 64
        for i, variable in enumerate(variables):
            if i == len(variables) - 1:
                begin = -(-begin // 64) * 64
            begins[i] = begin
            begin += variable[-1]
    data = header.ljust(begins[0], b"\0")
    data += b"".join(values.astype(">f8").tobytes() for _, values in scales)
    return Form(
        data.ljust(begins[-1], b"\0"),
        array.layout._replace(byteorder="big"),
        bytes(-array.nbytes % 4),
    )


def _unit(axis: Axis) -> bytes:
    if not axis.unit:
        return _ABSENT
    return _attributes([TypedAttribute("units", axis.unit)])


def _attributes(found: list[TypedAttribute]) -> bytes:
    if not found:
        return _ABSENT
    return _list(_ATTRIBUTES, len(found), b"".join(_attribute(one) for one in found))


def _attribute(one: TypedAttribute) -> bytes:
    value: Any = one.value
    if isinstance(value, str):
        text = value.encode()
        return _name(one.name) + struct.pack(">iq", _CHAR, len(text)) + _padded(text)
    kind = TYPES[f"{value.dtype.kind}{value.dtype.itemsize}"]
    data = np.atleast_1d(value).astype(value.dtype.newbyteorder(">")).tobytes()
    return _name(one.name) + struct.pack(">iq", kind, value.size) + _padded(data)


def _variable(
    name: str, axes: list[int], attributes: bytes, kind: int, size: int, begin: int
) -> bytes:
    numbers = struct.pack(f">q{len(axes)}q", len(axes), *axes)
    return _name(name) + numbers + attributes + struct.pack(">iqq", kind, size, begin)


def _list(tag: int, count: int, data: bytes) -> bytes:
    return struct.pack(">iq", tag, count) + data if count else _ABSENT


def _name(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">q", len(data)) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
