"""Data types, codecs, fill values, chunk keys and units as users type them, as in metadata."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from zarrfs import bounds
from zarrfs.counted import did_you_mean
from zarrfs.format.chunk_layout import parse_chunk_keys
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.extension_types.struct import StructFill
from zarrfs.format.metadata.lenient import name_non_finite, plain_fill
from zarrfs.format.metadata.older.v2_dtype import numpy_dtype
from zarrfs.format.metadata.pipelines import ALLOWED
from zarrfs.format.numpy_types import data_type_json
from zarrfs.format.registry import DATA_TYPES, find_data_type, parse_data_type


def read_data_type(text: str) -> tuple[Any, str]:
    """The data type as in v3 metadata, and the byte order that the text requests.

    text : a name of v3 (``uint16``, ``bfloat16``, ``r24``, ``string``), numpy's form in v2
        metadata (``<u2``, ``>f4``, ``M8[ns]``, ``U10``), or JSON of either.

    Raises ValueError.
    """
    if text[:1] in ("{", "["):
        value = _json(text, "data type is")
        if isinstance(value, dict):
            parse_data_type(value)
            return value, "little"
        return _of_numpy(numpy_dtype(value))
    if _known(text):
        return text, "little"
    try:
        dtype = numpy_dtype(text)
    except ValueError:
        hint = did_you_mean(text, [*CORE_DATA_TYPES, *DATA_TYPES])
        raise ValueError(f"unknown data type {text!r}{hint}") from None
    return _of_numpy(dtype)


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{what} not JSON: {bounds.why_not_json(text, error)}") from error


def data_type_names() -> list[str]:
    """The names that `read_data_type` accepts without a configuration, sorted."""
    return sorted(name for name in {*CORE_DATA_TYPES, *DATA_TYPES} if _known(name))


def _known(name: str) -> bool:
    try:
        return find_data_type(name) is not None
    except ValueError:
        # The type needs a configuration, which a name alone does not give.
        return False


def _of_numpy(dtype: np.dtype[Any]) -> tuple[Any, str]:
    stored = {dtype[name].byteorder for name in dtype.names or ()} | {dtype.byteorder}
    return data_type_json(dtype), "big" if ">" in stored else "little"


def parse_codecs(text: str) -> list[Any]:
    """Names and objects, in encoding order, for completion by `zarrfs.format.codec_chain`.

    text : JSON (one codec, or a list of them), ``none``, or the short form: ``zstd:3``,
        ``blosc:lz4,5,shuffle``, ``gzip``, ``crc32c``. In it, commas separate both the codecs and
        the arguments after a codec's colon. A word that the codec accepts as its next argument is
        one; any other word is the next codec.

    Raises ValueError.
    """
    text = text.strip()
    if text[:1] in ("[", "{", '"'):
        value = _json(text, "codecs are")
        return value if isinstance(value, list) else [value]
    return [] if text in ("", "none") else _short(text)


def _short(text: str) -> list[Any]:
    chain: list[Any] = []
    expected: Sequence[str] = ()
    for item in text.split(","):
        word = item.strip()
        if chain and ":" not in word and _argument(chain[-1], expected, word):
            continue
        name, colon, first = word.partition(":")
        if not name:
            raise ValueError(f"codecs {text!r}: a codec has no name")
        chain.append({"name": name})
        expected = _ARGUMENTS.get(name, ()) if colon else ()
        if colon:
            chain[-1]["configuration"] = {}
            if first and not _argument(chain[-1], expected, first):
                raise ValueError(f"codec {name}: {first!r} is none of its arguments")
    return chain


def _argument(codec: dict[str, Any], expected: Sequence[str], word: str) -> bool:
    """Add ``word`` to ``codec`` if it is the codec's next argument; returns whether it is."""
    if "configuration" not in codec:
        return False
    given = codec["configuration"]
    name, equals, value = word.partition("=")
    if equals:
        given[name.strip()] = _any(value)
        return True
    if codec["name"] == "transpose":
        return _axis(given, word)
    # By position, for the first member that has no value yet.
    for member in expected:
        if member in given:
            continue
        try:
            given[member] = _read(codec["name"], member, word)
        except ValueError:
            return False
        return True
    return False


def _axis(given: dict[str, Any], word: str) -> bool:
    if word in ("C", "F") and "order" not in given:
        given["order"] = word
        return True
    if not word.isdigit() or isinstance(given.get("order"), str):
        return False
    given.setdefault("order", []).append(int(word))
    return True


def _any(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read(codec: str, member: str, word: str) -> Any:
    """The value of an argument by position. Raises ValueError for a word that is none."""
    allowed = ALLOWED.get(codec, {}).get(member, range(0))
    if isinstance(allowed, range):
        return int(word)
    for value in allowed:
        if word == (value if isinstance(value, str) else json.dumps(value)):
            return value
    raise ValueError(word)


_ARGUMENTS: Mapping[str, Sequence[str]] = {
    **{name: tuple(ALLOWED[name]) for name in ("bytes", "gzip", "zstd", "blosc")},
    **dict.fromkeys(("zlib", "bz2"), ("level",)),
    "bitround": ("keepbits",),
}
"""Arguments by position; every codec takes ``name=value`` too."""


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
    kind = data_type.dtype.kind
    with suppress(ValueError):
        yield plain_fill(json.loads(text, parse_constant=_refuse), kind)
    if kind == "b":
        yield {"true": True, "false": False}.get(text.lower())
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
    if isinstance(data_type.parse_fill, StructFill):
        if data_type.name == "struct":
            return {name: default_fill(field) for name, field in data_type.parse_fill.fields}
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


_NAMES = ("default", "v2")
_SEPARATORS = ("/", ".")


def read_chunk_keys(text: str, zarr_format: int) -> Any:
    """The encoding as in v3 metadata; a separator alone means the default keys of the version.

    Raises ValueError.
    """
    if text[:1] == "{":
        value = _json(text, "chunk key encoding is")
        parse_chunk_keys(value)
        return value
    name, separator = (text[:-1], text[-1]) if text[-1:] in _SEPARATORS else (text, "")
    name = name or ("v2" if zarr_format == 2 else "default")
    if name not in _NAMES:
        parse_chunk_keys(name)  # raises for an unknown name, or one that needs arguments
        return {"name": name}
    default = "/" if name == "default" else "."
    return {"name": name, "configuration": {"separator": separator or default}}


_UNIT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)?\s*(.*)", re.ASCII)


def read_unit(text: str) -> str:
    """``4nm`` and ``4 nm`` as ``4 nm``, ``1nm`` as ``nm``. Raises ValueError.

    A factor and a base unit: https://google.github.io/tensorstore/schema.html#json-Unit
    """
    match = _UNIT.fullmatch(" ".join(text.split()))
    assert match is not None
    factor = 1.0 if match[1] is None else float(match[1])
    if not 0 < factor < math.inf:
        raise ValueError(f"{text!r} is not a unit: its factor must be above 0")
    if factor == 1 and match[2]:
        return match[2]
    return f"{factor:g} {match[2]}".rstrip()
