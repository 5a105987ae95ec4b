"""Fill values as users type them, and the default ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

from zarrfs.format.data_type import DataType
from zarrfs.format.metadata.lenient import name_non_finite

_TEXT_TYPES = ("string", "fixed_length_utf32")


def read_fill(text: str, data_type: DataType) -> Any:
    """The fill value as in v3 metadata.

    text : JSON, a number, ``nan``, ``-inf``, ``1+2j``, ``0x…`` with the bits of a float, or the
        text itself for types of text.

    Raises ValueError.
    """
    for value in _readings(text, data_type):
        try:
            data_type.fill_bytes(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return value
    raise ValueError(f"{text!r} is not a value of {data_type.name}")


def _readings(text: str, data_type: DataType) -> Iterator[Any]:
    if data_type.name in _TEXT_TYPES:
        yield text
        return
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        pass
    else:
        if data_type.dtype.kind in "iu" and isinstance(value, float) and value.is_integer():
            value = int(value)
        if data_type.dtype.kind == "b" and value in (0, 1):
            value = bool(value)
        yield [value, 0.0] if data_type.dtype.kind == "c" and not isinstance(value, list) else value
    if data_type.dtype.kind == "b" and text.lower() in ("true", "false"):
        yield text.lower() == "true"
    yield text
    with suppress(ValueError):
        yield name_non_finite(float(text))
    with suppress(ValueError):
        number = complex(text.replace(" ", ""))
        yield name_non_finite([number.real, number.imag])


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def default_fill(data_type: DataType) -> Any:
    """Zero, as in v3 metadata: false, 0, 0.0, the empty text, or a value of zero bytes."""
    size = data_type.item_size
    if data_type.name in ("struct", "structured"):
        return base64.b64encode(bytes(size)).decode()
    kind = data_type.dtype.kind
    if kind == "b":
        return False
    if kind in "iumM":
        return 0
    for value in ([0.0, 0.0], 0.0, "", [0] * min(size, 1 << 16)):
        try:
            data_type.fill_bytes(value)
        except (ValueError, TypeError):
            continue
        return value
    raise ValueError(f"{data_type.name} has no zero: a fill value must be given")
