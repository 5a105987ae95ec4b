"""The messages of object headers as bytes: types, shapes, fill values, links, attributes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Shape

UNDEFINED = 2**64 - 1
"""The address of data that do not exist."""

SUPERBLOCK = 96
"""Bytes."""

MARKS = range(20, 24)
"""The bytes of the superblock in which the library marks the file as open for writing."""

DATASPACE, LINK_INFO, DATATYPE, FILL, LINK, LAYOUT, GROUP_INFO, ATTRIBUTE = (
    *(0x01, 0x02, 0x03, 0x05, 0x06, 0x08, 0x0A, 0x0C),
)
_FIXED, _FLOAT, _STRING, _COMPOUND, _REFERENCE, _ENUM, _VARIABLE = 0, 1, 3, 6, 7, 8, 9
# Place and bits of exponent, bits of the mantissa, bias of the exponent.
_FLOATS = {2: (10, 5, 10, 15), 4: (23, 8, 23, 127), 8: (52, 11, 52, 1023)}

Message = tuple[int, bytes]
"""Its type, and its data."""

REFERENCE = struct.pack("<BBBBI", 0x10 | _REFERENCE, 0, 0, 0, 8)
"""The type of a reference to an object."""


def superblock(end: int) -> bytes:
    """The superblock, of version 0, which a program that writes elements need not change.

    end : of the file. The root group follows the superblock directly.
    """
    versions = struct.pack("<8B", 0, 0, 0, 0, 0, 8, 8, 0)
    places = struct.pack("<HHIQQQQ", 4, 16, 0, 0, UNDEFINED, end, UNDEFINED)
    root = struct.pack("<QQII16x", 0, SUPERBLOCK, 0, 0)
    return b"\x89HDF\r\n\x1a\n" + versions + places + root


def number_type(dtype: np.dtype[Any]) -> bytes:
    """The type of numbers, or of booleans or complex numbers in h5py's form."""
    big = int(dtype.byteorder == ">")
    size = dtype.itemsize
    if dtype.kind == "b":
        base = number_type(np.dtype("i1"))
        return struct.pack("<BHBI", 0x30 | _ENUM, 2, 0, 1) + base + b"FALSE\0TRUE\0\0\1"
    if dtype.kind == "c":
        part = number_type(np.dtype(f"{dtype.byteorder}f{size // 2}"))
        members = b"r\0\0" + part + b"i\0" + bytes([size // 2]) + part
        return struct.pack("<BHBI", 0x30 | _COMPOUND, 2, 0, size) + members
    if dtype.kind == "f":
        place, bits, mantissa, bias = _FLOATS[size]
        flags = (0x20 | big, size * 8 - 1, 0)
        layout = struct.pack("<HHBBBBI", 0, size * 8, place, bits, 0, mantissa, bias)
        return struct.pack("<BBBBI", 0x10 | _FLOAT, *flags, size) + layout
    flags = (big | (8 if dtype.kind == "i" else 0), 0, 0)
    return struct.pack("<BBBBIHH", 0x10 | _FIXED, *flags, size, 0, size * 8)


def string_type(size: int) -> bytes:
    """Text in UTF-8 of a fixed number of bytes with a zero at its end."""
    return struct.pack("<BBBBI", 0x10 | _STRING, 0x10, 0, 0, size)


def sequence_type(base: bytes) -> bytes:
    """The type of sequences of any length, whose elements are in a heap."""
    return struct.pack("<BBBBI", 0x10 | _VARIABLE, 0, 0, 0, 16) + base


def text_type() -> bytes:
    """Text in UTF-8 of any length, which is in a heap."""
    base = number_type(np.dtype("u1"))
    return struct.pack("<BBBBI", 0x10 | _VARIABLE, 1, 1, 0, 16) + base


def texts(address: int, lengths: Sequence[int]) -> bytes:
    """The elements of a dataset of texts that are the objects of a heap, in order.

    An empty text is an object, too: without one R crashes at it.
    """
    return b"".join(struct.pack("<IQI", n, address, i) for i, n in enumerate(lengths, 1))


def pair_type(first: tuple[str, bytes], second: tuple[str, bytes], offset: int, size: int) -> bytes:
    """A compound of two members, the second of which begins at ``offset``."""
    members = b"".join(
        name.encode() + b"\0" + bytes([at]) + kind
        for (name, kind), at in ((first, 0), (second, offset))
    )
    return struct.pack("<BHBI", 0x30 | _COMPOUND, 2, 0, size) + members


def dataspace(shape: Shape | None) -> bytes:
    """The dataspace; a single element if ``shape`` is None or empty."""
    rank = len(shape or ())
    return struct.pack(f"<BBBB{rank}Q", 2, rank, 0, int(rank > 0), *(shape or ()))


def fill_value(data: bytes | None) -> bytes:
    """The fill value of a dataset with space allocated from the beginning; None: not defined."""
    if data is None:
        return struct.pack("<BB", 3, 1 | 2 << 2)
    return struct.pack("<BBI", 3, 1 | 2 << 2 | 0x20, len(data)) + data


def contiguous(address: int, size: int) -> bytes:
    return struct.pack("<BBQQ", 3, 1, address, size)


def chunked(address: int, chunks: Shape, item_size: int) -> bytes:
    """Chunks with a B-tree of version 1, whose root is at ``address``."""
    head = struct.pack("<BBBQ", 3, 2, len(chunks) + 1, address)
    return head + struct.pack(f"<{len(chunks) + 1}I", *chunks, item_size)


def group(links: Sequence[tuple[str, int]]) -> list[Message]:
    """A group with links to the objects at the given addresses, in this order."""
    info = struct.pack("<BBQQQ", 0, 1, len(links), UNDEFINED, UNDEFINED)
    found = [(LINK_INFO, info), (GROUP_INFO, b"\0\0")]
    for i, (name, address) in enumerate(links):
        data = name.encode()
        # The length in two bytes, the order, and UTF-8.
        head = struct.pack("<BBQBH", 1, 0x01 | 0x04 | 0x10, i, 1, len(data))
        found.append((LINK, head + data + struct.pack("<Q", address)))
    return found


def attribute(name: str, kind: bytes, shape: Shape | None, data: bytes) -> Message:
    title = name.encode() + b"\0"
    space = dataspace(shape)
    head = struct.pack("<BBHHHB", 3, 0, len(title), len(kind), len(space), 1)
    return ATTRIBUTE, head + title + kind + space + data


def text_attribute(name: str, value: str) -> Message:
    data = value.encode() + b"\0"
    return attribute(name, string_type(len(data)), None, data)


def texts_attribute(name: str, values: Sequence[str]) -> Message:
    parts = [value.encode() + b"\0" for value in values]
    size = max(map(len, parts), default=1)
    data = b"".join(part.ljust(size, b"\0") for part in parts)
    return attribute(name, string_type(size), (len(parts),), data)


def number_attribute(name: str, value: NDArray[Any]) -> Message:
    shape = tuple(value.shape) or None
    return attribute(name, number_type(value.dtype), shape, value.tobytes())


def object_header(messages: Sequence[Message]) -> bytes:
    body = b"".join(struct.pack("<BHB", kind, len(data), 0) + data for kind, data in messages)
    return with_checksum(b"OHDR" + struct.pack("<BBI", 2, 2, len(body)) + body)


def with_checksum(data: bytes) -> bytes:
    # Imported here, because it imports all codecs of numcodecs.
    from numcodecs.jenkins import jenkins_lookup3  # noqa: PLC0415

    return data + struct.pack("<I", jenkins_lookup3(np.frombuffer(data, np.uint8).copy(), 0))


def heap(objects: Sequence[bytes]) -> bytes:
    """A global heap collection; object number 1 is the first one."""
    parts = []
    for i, data in enumerate(objects, 1):
        parts.append(
            struct.pack("<HHIQ", i, 1, 0, len(data)) + data.ljust(-(-len(data) // 8) * 8, b"\0")
        )
    used = 16 + sum(map(len, parts))
    size = max(4096, -(-(used + 16) // 8) * 8)
    head = b"GCOL" + struct.pack("<B3xQ", 1, size)
    rest = struct.pack("<HHIQ", 0, 0, 0, size - used)
    return (head + b"".join(parts) + rest).ljust(size, b"\0")
