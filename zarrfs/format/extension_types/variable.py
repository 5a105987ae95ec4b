"""Types whose elements have no fixed size: ``string``, ``bytes``, and JSON values.

https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/string
https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/bytes

An element in memory is a reference to a Python object. Metadata do not give the size of such
chunks, so one limit applies to all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.fill_value import parse_raw

LARGEST_CHUNK = 1 << 27
"""The most bytes that the serialised elements of one chunk may have."""


@dataclass(frozen=True)
class VariableDataType(DataType):
    """A type of Python objects. Its fill value may have any number of bytes.

    load : converts these bytes to the object.
    """

    load: Callable[[bytes], Any] = bytes

    @property
    def fixed_size(self) -> bool:
        return False

    def fill_bytes(self, value: Any) -> bytes:
        return self.parse_fill(value, self.dtype)

    def element(self, data: bytes) -> NDArray[Any]:
        # Filled in two steps: in one step numpy would make an array of a list.
        element = np.empty((), object)
        element[()] = self.load(data)
        return element


def _parse_string(value: Any, dtype: np.dtype[Any]) -> bytes:
    if value is None:
        return b""
    # zarr-python 2 writes 0 if the user chose no fill value, and reads it as the text "0".
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value.encode("utf-8", "surrogatepass")


def _parse_bytes(value: Any, dtype: np.dtype[Any]) -> bytes:
    if value is None or (value == 0 and isinstance(value, int)):
        return b""
    return parse_raw(value, dtype)


def _parse_json(value: Any, dtype: np.dtype[Any]) -> bytes:
    return json.dumps(value).encode()


def _decode_utf8(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


_OBJECT = np.dtype(object)
STRING = VariableDataType("string", _OBJECT, _parse_string, load=_decode_utf8)
BYTES = VariableDataType("bytes", _OBJECT, _parse_bytes, load=bytes)
JSON = VariableDataType("json", _OBJECT, _parse_json, load=json.loads)
"""Any JSON value, for objects that v2 stores as JSON, MessagePack or arrays; no name in v3."""


def variable(name: str, configuration: Mapping[str, Any]) -> DataType:
    """``string``, ``bytes`` and its alias ``variable_length_bytes``."""
    return STRING if name == "string" else BYTES
