"""Limits on the memory, time and nesting that a document or a stream may take.

Readers check each value that a hostile author chooses against a limit from here before they parse:
the size of a document, in the file and in memory; its nesting; how many values, codecs, axes and
fields metadata have; how large an element is; how many members or blocks a stream has. A decoder
compares a number from the data with the one in the metadata before it multiplies, allocates or
repeats by that number. ``SECURITY.md`` has the table of limits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LARGEST_DOCUMENT = 64 << 20
"""Bytes of one metadata document. Consolidated ones of 100 000 arrays are smaller."""

LARGEST_PARSED = 256 << 20
"""Bytes that one parsed document may take, as `parsed_size` counts them."""

LARGEST_REFERENCES = 128 << 20
"""Bytes of a document of references, and of the URLs that its templates give."""

LARGEST_PARSED_REFERENCES = 2 << 30
"""Bytes of a parsed document of references, by `parsed_size`; the real size is about half."""

LARGEST_MANIFESTS = 2 << 30
"""Bytes in memory of the manifests of an Icechunk snapshot: about 40 million chunks."""

LARGEST_CONTENTS = 1 << 30
"""Bytes of an archive's table of contents, as `member_size` counts them: a million members."""

LARGEST_UNPACKED = 512 << 20
"""Bytes that are decompressed to find the members of a compressed tar file."""

LONGEST_NAME = 4096
"""Bytes of the name of an archive's member. Linux opens no longer path."""

_LONGEST_ENTRY = 255  # bytes of a name in a directory

MOST_NAMES = 1 << 22
"""Names that a service lists for one directory. They may have 256 characters each on average."""

MOST_GENERATED = 1 << 20
"""References that the ``gen`` of a document makes; each takes about 10 µs."""

DEEPEST = 128
"""Levels of objects and lists within each other in a document."""

MOST_VALUES = 1 << 17
"""JSON values that describe one array, without its attributes; each takes about 20 µs to check."""

MOST_CODECS = 64
"""Codecs of one pipeline; a real pipeline has at most five."""

MOST_AXES = 32
"""Axes of an array or a field, or in the header of a stream: the most that numpy supports."""

MOST_FIELDS = 4096
"""Fields of one struct."""

MOST_SCALARS = 256
"""Pairs of a scalar map; the codec compares each of them with every element."""

LARGEST_LENGTH = 2**63 - 1
"""Elements along an axis of an array or a chunk; also the bytes of the largest file on Linux."""

LARGEST_ELEMENT = 16 << 20
"""Bytes of one element, and so of a fill value; equal to the smallest memory budget."""

LARGEST_OBJECTS = 512 << 20
"""Bytes of the Python objects of one chunk whose elements have no fixed size."""

LONGEST_REASON = 1000
"""Characters that an error may quote from data."""

_LIST, _DICT, _VALUE, _STRING = 88, 250, 48, 64  # bytes: empty or of one entry, with its slot
_HOLDS = (dict, list, tuple)
_MEMBER = 1024  # bytes of an archive's member, without its name
_PACKED_VALUE = 40  # bytes in memory of an item of a list that takes at least one MessagePack byte


class OutOfBoundsError(ValueError):
    """A document or a stream says or needs more than the limits allow."""


def shown(text: object) -> str:
    """The text of an error, cut if the data that it quotes would fill pages."""
    reason = str(text)
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"


def parsed_size(text: bytes) -> int:
    """The most bytes that the JSON document ``text`` takes once it is parsed.

    Computed from the number of brackets, commas, colons and quotes, inside strings and outside.
    """
    # Python stores a string in 1, 2 or 4 bytes per character, depending on its largest character.
    width = 1 if text.isascii() and b"\\u" not in text else 4
    count = text.count
    return (
        width * len(text)
        + _VALUE * (1 + count(b",") + count(b":"))
        + _STRING * (count(b'"') // 2)
        + _LIST * count(b"[")
        + _DICT * count(b"{")
    )


def load_json(text: bytes, largest: int = LARGEST_PARSED, **keywords: Any) -> Any:
    """The JSON value of ``text``, which is encoded in UTF-8, UTF-16 or UTF-32.

    largest : bytes that the parsed value may take.
    keywords : passed to `json.loads`.

    Raises ValueError (OutOfBoundsError for too large a value), and RecursionError for endless
    nesting.
    """
    if 300 * len(text) > largest and (size := _parsed_size_of_any(text)) > largest:
        raise OutOfBoundsError(
            f"takes up to {size} bytes once it is parsed, at most {largest} are allowed"
        )
    value = json.loads(text, **keywords)
    if text.count(b"[") + text.count(b"{") > DEEPEST:
        check_depth(value)
    return value


def why_not_json(text: bytes | str, error: ValueError | RecursionError) -> str:
    """The reason of an error of `load_json` or `json.loads` in words for users."""
    if not text.strip():
        return "it is empty"
    if isinstance(error, json.JSONDecodeError):
        return f"its text ends or is wrong in line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not {error.encoding.upper()}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _parsed_size_of_any(text: bytes) -> int:
    encoding = json.detect_encoding(text)
    if encoding.startswith("utf-8"):
        return parsed_size(text)
    # A character takes two or four bytes. The counted marks occur in each of these encodings.
    return 4 * parsed_size(text)


def check_depth(value: Any, deepest: int = DEEPEST) -> None:
    """Raises OutOfBoundsError if lists and objects are nested deeper than ``deepest`` levels."""
    level = [value]
    for _ in range(deepest + 1):
        level = [item for held in map(_held, level) for item in held if isinstance(item, _HOLDS)]
        if not level:
            return
    raise OutOfBoundsError(f"is nested deeper than {deepest} levels")


def _held(value: Any) -> Iterable[Any]:
    # Most values are of these types, and `isinstance` takes several times as long.
    kind = type(value)
    if kind is str or kind is int:
        return ()
    if kind is dict or isinstance(value, Mapping):
        held: Iterable[Any] = value.values()
        return held
    return value if isinstance(value, list | tuple) else ()


def check_values(value: Any, most: int = MOST_VALUES) -> None:
    """Raises OutOfBoundsError for a document with more than ``most`` values or nested too deep."""
    left, depth, level = most, 0, [value]
    while level:
        below: list[Any] = []
        for item in level:
            below.extend(_held(item))
            if len(below) > left:
                raise OutOfBoundsError(f"has more than {most} values beside its attributes")
        left -= len(below)
        depth += 1
        if depth > DEEPEST:
            raise OutOfBoundsError(f"is nested deeper than {DEEPEST} levels")
        level = below


def check_lengths(lengths: Sequence[int], what: str) -> None:
    """Raises OutOfBoundsError for an axis with more elements than a file can hold."""
    if any(length > LARGEST_LENGTH for length in lengths):
        raise OutOfBoundsError(f"{what}: an axis has more than {LARGEST_LENGTH} elements")


def check_count(count: int, most: int, what: str) -> None:
    """Raises OutOfBoundsError for more than ``most`` of ``what``."""
    if count > most:
        raise OutOfBoundsError(f"has {count} {what}, at most {most} are served")


def check_element(size: int) -> None:
    """Raises OutOfBoundsError for elements of more than `LARGEST_ELEMENT` bytes."""
    if size > LARGEST_ELEMENT:
        raise OutOfBoundsError(f"an element has {size} bytes, at most {LARGEST_ELEMENT} are served")


def check_claimed_shape(shape: Any, elements: int) -> tuple[int, ...]:
    """The shape that a stream gives for a chunk of ``elements`` elements.

    Raises ValueError if the shape is no list of plain integers, or has another number of elements.
    """
    if not isinstance(shape, list | tuple) or len(shape) > MOST_AXES:
        raise ValueError("has an invalid shape")
    count = 1
    for length in shape:
        # In Python, True counts as a number, and a list times a number is a longer list.
        if type(length) is not int or not 0 <= length <= elements:
            raise ValueError("has another shape than the chunk")
        count *= length
    if count != elements:
        raise ValueError(f"has {count} elements, expected {elements}")
    return tuple(shape)


def most_members(decoded: int) -> int:
    """Members that a stream of ``decoded`` bytes may have, empty ones included."""
    return 1024 + decoded // 1024


def most_blocks(decoded: int) -> int:
    """Blocks of a container of ``decoded`` bytes that Python decodes one by one.

    Blosc makes hardly any blocks of less than 128 bytes.
    """
    return 64 + decoded // 64


def member_size(length: int) -> int:
    """Bytes in memory of an archive's member whose name or names have ``length`` bytes."""
    return _MEMBER + 4 * length


def check_names(count: int, length: int) -> None:
    """Raises OutOfBoundsError for a listing of ``count`` names, ``length`` characters in all."""
    if count > MOST_NAMES or length > 256 * MOST_NAMES:
        raise OutOfBoundsError(f"the listing goes on after {count - 1} names")


def check_contents(size: int) -> None:
    """Raises OutOfBoundsError for a table of contents of ``size`` bytes, if that is too large."""
    if size > LARGEST_CONTENTS:
        raise OutOfBoundsError(
            f"the table of contents takes more than {LARGEST_CONTENTS} bytes; unpack the archive"
        )


def check_member_name(name: str) -> None:
    """Raises OutOfBoundsError for a name that is too long or has too many slashes."""
    if len(name) > LONGEST_NAME:
        raise OutOfBoundsError(f"a member's name has {len(name)} characters: {shown(name)}")
    check_count(name.count("/"), DEEPEST, "slashes in a member's name")


def packed_size(size: int, containers: int) -> int:
    """The most bytes in memory of ``size`` MessagePack bytes with ``containers`` lists and maps."""
    return size * _PACKED_VALUE + containers * _DICT


def is_name(name: str) -> bool:
    """Whether a file system can have an entry of this name.

    https://man7.org/linux/man-pages/man7/path_resolution.7.html
    """
    if name in ("", ".", "..") or "\0" in name or "/" in name:
        return False
    try:
        return len(os.fsencode(name)) <= _LONGEST_ENTRY
    except UnicodeEncodeError:
        return False
