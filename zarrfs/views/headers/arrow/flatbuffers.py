"""FlatBuffers, as far as Arrow's messages need them: each object follows the one that names it.

https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias


class Scalar(NamedTuple):
    """``code`` : of `struct`, of a number of 1, 2, 4 or 8 bytes."""

    code: str
    value: int


class Structs(NamedTuple):
    """A vector of ``length`` structs of numbers of up to 8 bytes."""

    length: int
    data: bytes


Table: TypeAlias = "Mapping[int, Scalar | Node]"
"""The fields of a table by their numbers."""

Node: TypeAlias = "Table | Structs | str | Sequence[Node]"
"""A table, a vector of structs, a text, or a vector of tables."""


def flatbuffer(root: Table) -> bytes:
    """The bytes of a buffer; their number is a multiple of 8."""
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _put(out, root))
    return bytes(out) + bytes(-len(out) % 8)


def _put(out: bytearray, node: Node) -> int:
    """Append an object; returns where it begins."""
    if isinstance(node, Mapping):
        return _put_table(out, node)
    if isinstance(node, str):
        out += bytes(-len(out) % 4)
        at = len(out)
        data = node.encode("utf-8", "replace")
        out += struct.pack("<I", len(data)) + data + b"\0"
        return at
    if isinstance(node, Structs):
        # The structs begin at a multiple of 8.
        out += bytes((4 - len(out)) % 8)
        at = len(out)
        out += struct.pack("<I", node.length) + node.data
        return at
    out += bytes(-len(out) % 4)
    at = len(out)
    out += struct.pack("<I", len(node)) + bytes(4 * len(node))
    for number, each in enumerate(node):
        _point(out, at + 4 + 4 * number, each)
    return at


def _put_table(out: bytearray, fields: Mapping[int, Scalar | Node]) -> int:
    slots = max(fields, default=-1) + 1
    table = 4 + 2 * slots
    out += bytes((4 - len(out) - table) % 8)
    vtable = len(out)
    at = vtable + table
    # Behind the place of the vtable, at a multiple of 8: the largest fields first.
    sizes = {
        slot: struct.calcsize(f"<{field.code}") if isinstance(field, Scalar) else 4
        for slot, field in fields.items()
    }
    places: dict[int, int] = {}
    size = 4
    for slot in sorted(sizes, key=lambda slot: -sizes[slot]):
        places[slot] = size
        size += sizes[slot]
    offsets = [places.get(slot, 0) for slot in range(slots)]
    out += struct.pack(f"<HH{slots}H", table, size, *offsets)
    out += struct.pack("<i", table) + bytes(size - 4)
    for slot, field in fields.items():
        if isinstance(field, Scalar):
            struct.pack_into(f"<{field.code}", out, at + places[slot], field.value)
        else:
            _point(out, at + places[slot], field)
    return at


def _point(out: bytearray, at: int, node: Node) -> None:
    """Append an object, and write at ``at`` how far behind that it begins."""
    struct.pack_into("<I", out, at, _put(out, node) - at)
