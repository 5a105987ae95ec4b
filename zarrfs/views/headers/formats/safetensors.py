"""safetensors, of machine learning: https://github.com/huggingface/safetensors."""

from __future__ import annotations

import json
from functools import partial

from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan

# By Zarr's names, because some of the types are not numpy's.
TYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
    "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32",
    "float64": "F64", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


def safetensors(array: Described) -> Plan:
    """One tensor of any shape; its bytes are always little-endian."""
    if (name := TYPES.get(array.data_type.name)) is None:
        raise Inexpressible(f"safetensors has no {array.data_type.name}")
    return partial(_form, array, name)


def _form(array: Described, name: str) -> Form:
    tensor = {"dtype": name, "shape": array.shape, "data_offsets": [0, array.nbytes]}
    key = "array" if array.name == "__metadata__" else array.name
    text = json.dumps({key: tensor}).encode()
    text += b" " * (-len(text) % 8)
    return Form(len(text).to_bytes(8, "little") + text, array.layout._replace(byteorder="little"))
