"""``group.arrow``: the arrays of one axis and of one length in a group, as an Arrow file.

The file has one batch, in which a column is the decoded elements of its array. Missing values are
null: they have a bit, which is computed when it is read. A categorical of AnnData is a dictionary.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from zarrfs.views.bits import Masked
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.headers.arrow.flatbuffers import Node, Scalar, Structs, Table, flatbuffer
from zarrfs.views.headers.attributes import LEFT_OUT
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, GroupForm, Inexpressible, Placed
from zarrfs.views.headers.grouped import Below, Grouped, GroupFormat, Member
from zarrfs.views.tiles.computed import Computed
from zarrfs.views.tiles.computed import Table as Bytes

_MAGIC = b"ARROW1"
_ALIGNMENT = 64
_VERSION = Scalar("h", 4)
# Kinds of messages and of types.
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3
_INT, _FLOAT, _UTF8, _BOOL, _TIMESTAMP, _BINARY, _DURATION = 2, 3, 5, 6, 10, 15, 18
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_NOT_A_TIME = struct.pack("<q", -(2**63))
_CATEGORICAL = "categorical"
_MOST_COUNTED = 1 << 30
"""Bytes of all columns whose missing values are counted."""


class _Type(NamedTuple):
    """``number`` : of the kind of type among all; ``fields`` : of the table that describes it."""

    number: int
    fields: Table


class _Part(NamedTuple):
    """A buffer: known bytes, or elements of an array; see `Masked` for ``other``."""

    size: int
    data: bytes = b""
    path: str = ""
    other: bytes = b""
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class _Column:
    """
    parts : validity, then the others; a validity without bytes means that no value is missing.
    nulls : how many values are missing; `_counted` finds it.
    values : what indices of a dictionary stand for; ``ordered``: in a meaningful order.
    """

    name: str
    type: _Type
    length: int
    parts: Sequence[_Part]
    attributes: Mapping[str, str]
    nulls: int = 0
    values: _Column | None = None
    ordered: bool = False


def _arrow(group: Grouped) -> GroupForm:
    """Raises Inexpressible for a group without any column."""
    found, left_out = _columns(group)
    lengths = Counter(column.length for column in found)
    index = group.attributes.get("_index")
    length = next((c.length for c in found if c.name == index), 0)
    length = length or max(lengths, key=lengths.__getitem__, default=0)
    members = {member.path: member for member in group.members}
    columns: list[_Column] = []
    room, unread = LARGEST_HEADER // 2, _MOST_COUNTED
    for column in _in_order(found, group.attributes.get("column-order")):
        size = _known_bytes(column) + len(json.dumps([column.name, dict(column.attributes)])) + 500
        read = sum(members[path].array.nbytes for path in _to_count(column))
        if column.length == length and size <= room and read <= unread:
            columns.append(_counted(column, members))
            room -= size
            unread -= read
        else:
            left_out.append(column.name)
    if not columns:
        raise Inexpressible("no array of one axis is a column of Arrow")
    return _File(columns, sorted({*left_out, *group.others})).form(length)


ARROW = GroupFormat(
    lambda attributes: Below.HIERARCHY if _is(attributes, "dataframe") else Below.CHILDREN,
    _arrow,
    always=False,
)


def _is(attributes: Mapping[str, Any], encoding: str) -> bool:
    return bool(attributes.get("encoding-type") == encoding)


def _in_order(columns: Iterable[_Column], names: object) -> list[_Column]:
    """The columns that AnnData names in its order; the others before."""
    order = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    place = {name: number for number, name in enumerate(order)}
    return sorted(columns, key=lambda column: place.get(column.name, -1))


def _columns(group: Grouped) -> tuple[list[_Column], list[str]]:
    """The columns, and the names of arrays that are none."""
    members = {member.path: member for member in group.members}
    found: list[_Column] = []
    left_out: list[str] = []
    for path, member in members.items():
        parent, _, name = path.rpartition("/")
        attributes = group.groups.get(parent, {})
        if _is(attributes, _CATEGORICAL) and name == "categories" and f"{parent}/codes" in members:
            continue
        column = _column(path, member) if not parent else None
        if _is(attributes, _CATEGORICAL) and name == "codes":
            values = members.get(f"{parent}/categories")
            column = _categorical(parent, member, values, attributes)
        if column is None:
            left_out.append(path)
        else:
            found.append(column)
    return found, left_out


def _column(path: str, member: Member, name: str | None = None) -> _Column | None:
    array = member.array
    if len(array.axes) != 1 or array.layout != FlatConfig():
        return None
    said = {k: v for k, v in array.attributes.items() if isinstance(v, str)}
    name, length = path if name is None else name, array.count
    if member.texts is not None:
        texts = b"".join(member.texts)
        ends = np.fromiter(accumulate(map(len, member.texts), initial=0), "<i4", length + 1)
        parts = [_Part(0), _Part(ends.nbytes, ends.tobytes()), _Part(len(texts), texts)]
        return _Column(name, _Type(_UTF8, {}), length, parts, said)
    if array.code == "b1":
        bits = _Part(-(-length // 8), path=path, other=b"\0")
        return _Column(name, _Type(_BOOL, {}), length, [_Part(0), bits], said)
    if (kind := _type(array)) is None:
        return None
    return _of_elements(name, kind, member, _missing(array), said)


def _of_elements(
    name: str, kind: _Type, member: Member, missing: bytes, said: Mapping[str, str]
) -> _Column:
    """A column of elements, of which those with the bytes ``missing`` are null."""
    path, length = member.path, member.array.count
    valid = _Part(-(-length // 8), path=path, other=missing) if missing else _Part(0)
    return _Column(name, kind, length, [valid, _Part(member.array.nbytes, path=path)], said)


def _to_count(column: _Column) -> list[str]:
    """The paths of arrays whose missing values have to be counted."""
    own = [column.parts[0].path] if column.parts[0].size else []
    return own if column.values is None else [*own, *_to_count(column.values)]


def _counted(column: _Column, members: Mapping[str, Member]) -> _Column:
    """The column with its number of nulls, for which all elements are read."""
    values = None if column.values is None else _counted(column.values, members)
    valid, *others = column.parts
    nulls = members[valid.path].count(valid.other) if valid.size else 0
    parts = [valid if nulls else _Part(0), *others]
    return replace(column, parts=parts, nulls=nulls, values=values)


def _type(array: Described) -> _Type | None:
    dtype = array.data_type.dtype
    if dtype.kind in "mM":
        unit, step = np.datetime_data(dtype)
        if unit in _UNITS and step == 1:
            number = _TIMESTAMP if dtype.kind == "M" else _DURATION
            return _Type(number, {0: Scalar("h", _UNITS[unit])})
        return None
    if array.code[:1] in ("i", "u"):
        return _integer(array.code)
    if array.code[:1] == "f":
        return _Type(_FLOAT, {0: Scalar("h", {2: 0, 4: 1, 8: 2}[dtype.itemsize])})
    if dtype.kind in "SV" and array.data_type.fixed_size and dtype.fields is None:
        return _Type(_BINARY, {0: Scalar("i", dtype.itemsize)})
    return None


def _integer(code: str) -> _Type:
    return _Type(_INT, {0: Scalar("i", 8 * int(code[1:])), 1: Scalar("B", int(code[0] == "i"))})


def _missing(array: Described) -> bytes:
    """The bytes of the only missing value; empty: there is none, or several."""
    dtype = array.data_type.dtype
    if dtype.kind in "mM":
        return _NOT_A_TIME
    if not array.code or len(array.facts.missing) != 1:
        return b""
    return np.array(array.no_data).astype(dtype).tobytes()


def _categorical(
    name: str, codes: Member, categories: Member | None, attributes: Mapping[str, Any]
) -> _Column | None:
    """Codes of which -1 is a missing value, and what they stand for."""
    array, code = codes.array, codes.array.code
    if categories is None or code[:1] != "i" or len(array.axes) != 1:
        return None
    values = _column(categories.path, categories, name)
    if values is None or array.layout != FlatConfig():
        return None
    other = b"\xff" * int(code[1:])
    column = _of_elements(name, _integer(code), codes, other, {})
    valid, elements = column.parts
    # polars takes no negative code, not even of a missing value.
    parts = [valid, elements._replace(other=other, zeroed=True)]
    return replace(column, parts=parts, values=values, ordered=attributes.get("ordered") is True)


def _known_bytes(column: _Column) -> int:
    own = sum(len(part.data) for part in column.parts)
    return own + (0 if column.values is None else _known_bytes(column.values))


class _File:
    """The bytes of the file, which are put one after another."""

    def __init__(self, columns: Sequence[_Column], left_out: Sequence[str]) -> None:
        self._columns = columns
        self._tables: list[Bytes] = []
        self._placed: list[Placed] = []
        self._end = 0
        said = {LEFT_OUT: json.dumps(left_out)} if left_out else {}
        self._schema: Table = {
            1: [_field(number, column) for number, column in enumerate(columns)],
            2: _pairs(said),
        }

    def form(self, length: int) -> GroupForm:
        self._put(_MAGIC.ljust(8, b"\0"))
        self._message(_SCHEMA, self._schema, 0)
        dictionaries = [
            self._batch([column.values], column.values.length, number)
            for number, column in enumerate(self._columns)
            if column.values is not None
        ]
        records = [self._batch(self._columns, length, None)]
        self._put(struct.pack("<II", 0xFFFFFFFF, 0))
        footer = flatbuffer({
            0: _VERSION,
            1: self._schema,
            2: Structs(len(dictionaries), b"".join(dictionaries)),
            3: Structs(len(records), b"".join(records)),
        })  # fmt: skip
        self._put(footer + struct.pack("<I", len(footer)) + _MAGIC)
        return GroupForm(Computed(self._tables), self._placed, self._end)

    def _put(self, data: bytes) -> None:
        self._tables.append(Bytes.of_bytes(self._end, data))
        self._end += len(data)

    def _message(self, kind: int, header: Table, body: int) -> tuple[int, int]:
        """Where the message begins, and its bytes without ``body``, which follows."""
        start = self._end
        message: Table = {0: _VERSION, 1: Scalar("B", kind), 2: header, 3: Scalar("q", body)}
        data = flatbuffer(message)
        data += bytes(-(start + 8 + len(data)) % _ALIGNMENT)
        self._put(struct.pack("<II", 0xFFFFFFFF, len(data)) + data)
        return start, self._end - start

    def _batch(self, columns: Sequence[_Column], length: int, number: int | None) -> bytes:
        """A batch of columns, of the dictionary ``number`` if there is one; returns its block."""
        at, nodes, buffers = 0, b"", b""
        parts: list[tuple[int, _Part]] = []
        for column in columns:
            nodes += struct.pack("<qq", column.length, column.nulls)
            for part in column.parts:
                buffers += struct.pack("<qq", at, part.size)
                parts.append((at, part))
                at += -(-part.size // _ALIGNMENT) * _ALIGNMENT
        records: Table = {
            0: Scalar("q", length),
            1: Structs(len(nodes) // 16, nodes),
            2: Structs(len(buffers) // 16, buffers),
        }
        if number is None:
            start, size = self._message(_RECORDS, records, at)
        else:
            start, size = self._message(_DICTIONARY, {0: Scalar("q", number), 1: records}, at)
        for offset, part in parts:
            begin = self._end + offset
            if part.path and part.size:
                place = Masked(begin, part.other, part.zeroed) if part.other else begin
                self._placed.append(Placed(part.path, place))
            elif part.size:
                self._tables.append(Bytes.of_bytes(begin, part.data))
        self._end += at
        return struct.pack("<qi4xq", start, size, at)


def _field(number: int, column: _Column) -> Table:
    shown = column if column.values is None else column.values
    fields: dict[int, Scalar | Node] = {
        0: column.name,
        1: Scalar("B", 1),
        2: Scalar("B", shown.type.number),
        3: shown.type.fields,
        5: [],
        6: _pairs(column.attributes),
    }
    if column.values is not None:
        ordered = Scalar("B", int(column.ordered))
        fields[4] = {0: Scalar("q", number), 1: column.type.fields, 2: ordered}
    return fields


def _pairs(said: Mapping[str, str]) -> Node:
    return [{0: key, 1: value} for key, value in said.items()]
