"""Reads one Parquet file of references; runs in a process of its own (`zarrfs.isolation`).

https://fsspec.github.io/kerchunk/spec.html#parquet-references

A small file can claim any number of rows, and the libraries for Parquet check little.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.store.remote.references.record import packed

# Imported before the limit on memory holds, which counts only what a request takes.
_pandas = import_module("pandas")
try:
    import_module("fastparquet")
    _ENGINE, _ARGUMENTS = "fastparquet", {}
except ImportError:
    import_module("pyarrow.parquet")
    _ENGINE, _ARGUMENTS = "pyarrow", {"use_threads": False}


def decode(parameters: Mapping[str, Any], data: bytes) -> bytes:
    """The rows in the form of `zarrfs.store.remote.references.record`.

    parameters : ``rows``, the most rows that the file may have.

    Raises ValueError, and any exception of the library.
    """
    try:
        frame = _pandas.read_parquet(io.BytesIO(data), engine=_ENGINE, **_ARGUMENTS)
        if len(frame) > parameters["rows"]:
            raise ValueError(f"has {len(frame)} rows, at most {parameters['rows']} are allowed")
        return packed(
            [None if _is_none(url) else _text(url) for url in _column(frame, "path")],
            _integers(frame, "offset"),
            _integers(frame, "size"),
            [None if _is_none(value) else _bytes(value) for value in _column(frame, "raw")],
        )
    except MemoryError:
        raise ValueError("takes more memory than a record of references may") from None


def _column(frame: Any, name: str) -> Any:
    return frame[name].to_numpy(dtype=object) if name in frame else [None] * len(frame)


def _is_none(value: object) -> bool:
    # pandas writes None, NaN or NA for a value that is not there.
    return value is None or value is _pandas.NA or (isinstance(value, float) and math.isnan(value))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise ValueError("has a URL that is not text")
    return value


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise ValueError("has inlined data that are not bytes")
    return value


def _integers(frame: Any, name: str) -> NDArray[np.int64]:
    if name not in frame:
        return np.zeros(len(frame), np.int64)
    found = frame[name].fillna(0)
    values = found.to_numpy()
    if values.dtype.kind not in "iuf":
        raise ValueError(f"has a column {name!r} that is not a number")
    whole: NDArray[np.int64] = values.astype(np.int64)
    if (whole != values).any() or (whole < 0).any():
        raise ValueError(f"has a column {name!r} with values that are not whole numbers")
    return whole
