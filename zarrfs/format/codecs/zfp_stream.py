"""Decodes zfp streams; runs in a process of its own (`zarrfs.isolation`).

zfp checks nothing: it reads as many bits as its parameters say, wherever the input ends.

https://zfp.readthedocs.io/en/release1.0.1/bit-stream.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bits of a header before the mode, and of a mode in its short and in its long form.
_BEFORE_MODE = 32 + 52
_SHORT_MODE, _LONG_MODE = 12, 64
_LONG = (1 << _SHORT_MODE) - 1
_SHORTEST_HEADER = 16  # bytes; zfp reads words of 8
_SLACK = 64


def block_bits(dtype: np.dtype[Any], axes: int, rate: float | None) -> int:
    """The most bits that the decoder reads for a block of 4 elements along each axis.

    rate : of the mode ``fixed_rate``; None: of a mode whose blocks vary in length. In such a mode
        the decoder reads one bit for each bit plane of a value. It also reads the tests that
        divide planes into groups: one for each plane and two for each value.
    """
    values: int = 4**axes
    if rate is not None:
        return math.floor(values * rate + 0.5)
    planes: int = 8 * dtype.itemsize
    return planes * (values + 1) + 2 * values + 128


def stream_bytes(dtype: np.dtype[Any], shape: Sequence[int], rate: float | None) -> int:
    """The most bytes that the decoder reads, header included."""
    blocks = math.prod(-(-length // 4) for length in shape)
    return -(-blocks * block_bits(dtype, len(shape), rate) // 8) + _SLACK


def decode(parameters: Mapping[str, Any], data: bytes) -> memoryview:
    """The decoded elements of a chunk, in C order.

    parameters : ``dtype`` of 4 or 8 bytes and ``shape`` of the chunk; ``header``, whether the
        stream has one; ``mode``, the arguments of zfpy's functions.

    Raises ValueError.
    """
    zfpy = import_module("zfpy")
    dtype, shape = np.dtype(parameters["dtype"]), tuple(parameters["shape"])
    mode, header = parameters["mode"], parameters["header"]
    if header:
        claimed = _checked_shape(zfpy, data, dtype, shape, mode)
        room = max(stream_bytes(dtype, s, mode.get("rate")) for s in (shape, claimed))
    else:
        room = stream_bytes(dtype, shape, mode.get("rate"))
    # The stream is decoded twice, with different bytes behind it. If the results differ, the
    # stream was cut short.
    room = max(room, len(data)) + _SLACK

    def decode_padded(padding: bytes) -> NDArray[np.uint8]:
        padded = data.ljust(room, padding)
        if header:
            found = zfpy.decompress_numpy(padded)
        else:
            found = zfpy._decompress(padded, zfpy.dtype_to_ztype(dtype), shape, **mode)
        return np.ascontiguousarray(found).reshape(-1).view(np.uint8)

    decoded = decode_padded(b"\0")
    if not np.array_equal(decoded, decode_padded(b"\xff")):
        raise ValueError("the stream ends too early")
    return decoded.data


def _checked_shape(
    zfpy: Any, data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], mode: Mapping[str, Any]
) -> tuple[int, ...]:
    """The shape in a header, which zfpy allocates, after a check of the other fields."""
    if len(data) < _SHORTEST_HEADER:
        raise ValueError(f"{len(data)} bytes are too few for a header")
    # A header has at most this size, and bytes behind the data must not be taken for one.
    found = zfpy.header(data[: 4 * _SHORTEST_HEADER].ljust(4 * _SHORTEST_HEADER, b"\0"))
    claimed = tuple(found[n] for n in ("nw", "nz", "ny", "nx") if found[n])
    if not claimed or math.prod(claimed) != math.prod(shape) or found["type"] != dtype.type:
        raise ValueError(f"the header says {list(claimed)} of {found['type'].__name__}")
    # The mode is encoded as for any other array of that type and number of axes.
    smallest = np.zeros((1,) * len(claimed), dtype)
    own = zfpy.compress_numpy(smallest, write_header=True, **mode)
    if _mode(data) != _mode(own):
        raise ValueError("the header says another mode than the metadata")
    return claimed


def _mode(data: bytes) -> int:
    bits = int.from_bytes(data[: 3 * 8], "little") >> _BEFORE_MODE
    short = bits & _LONG
    return short if short != _LONG else bits & ((1 << _LONG_MODE) - 1)
