"""Decoding with the system's libzstd.

https://facebook.github.io/zstd/zstd_manual.html
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer


class Libzstd:
    """Decodes a tenth faster than what Python packages bring, and into any memory.

    Mostly it is built with its assembler, which theirs are not, and each thread uses one
    context again and again. Raises OSError or AttributeError where there is no such library.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libzstd.so.1")
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._create = self._function("createDCtx", pointer)
        self._free = self._function("freeDCtx", size, pointer)
        self._decompress = self._function(
            "decompressDCtx", size, pointer, pointer, size, pointer, size
        )
        self._is_error = self._function("isError", ctypes.c_uint, size)
        self._error_name = self._function("getErrorName", ctypes.c_char_p, size)
        self._threads = threading.local()

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._library, f"ZSTD_{name}")
        function.restype, function.argtypes = result, arguments
        return function

    def decompress(self, data: Buffer, target: Buffer) -> None:
        """Decode all frames of ``data`` into ``target``, which they have to fill.

        Raises DecodeError.
        """
        size = self._decompress(
            self._context(), _address_of(target), len(target), _source(data), len(data)
        )
        if size == len(target):
            return
        if self._is_error(size):
            raise DecodeError(f"Zstandard: {self._error_name(size).decode()}")
        raise DecodeError(f"Zstandard frames hold {size} bytes, expected {len(target)}")

    def decompress_many(self, data: Sequence[Buffer], targets: Sequence[memoryview]) -> bool:
        """As `decompress` for each; False where that would raise for one.

        data : each one frame that tells that it holds as many bytes as its target has. So
            frames side by side go to targets side by side in one call, which is one wait
            for the interpreter: the library refuses what holds more or less than it tells.
        """
        context, decompress = self._context(), self._decompress
        start = length = target = size = 0
        for each, place in zip(data, targets, strict=True):
            if isinstance(each, bytes):  # which lie beside nothing, and need no address
                count = len(place)
                if decompress(context, _address_of(place), count, each, len(each)) != count:
                    return False
                continue
            source, address = _address_of_source(each), _address_of(place)
            if source == start + length and address == target + size:
                length += len(each)
                size += len(place)
                continue
            if size and decompress(context, target, size, start, length) != size:
                return False
            start, length, target, size = source, len(each), address, len(place)
        return not size or decompress(context, target, size, start, length) == size

    def _context(self) -> int:
        """This thread's, which ends with it."""
        context: _Context | None = getattr(self._threads, "context", None)
        if context is None:
            context = self._threads.context = _Context(self._create(), self._free)
        return context.address


class _Context:
    """Lasts as long as the object."""

    def __init__(self, address: int | None, free: Any) -> None:
        if address is None:
            raise MemoryError
        self.address = address
        self._free = free

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._free(self.address)


def _source(data: Buffer) -> bytes | int:
    """What is passed for bytes to be read."""
    return data if isinstance(data, bytes) else _address_of_source(data)


def _address_of_source(data: Buffer) -> int:
    """Of memory that may be read-only, which ctypes does not take."""
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address


def _address_of(target: Buffer) -> int:
    """Of writable memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(target))


@cache
def libzstd() -> Libzstd | None:
    """None where the system has none."""
    try:
        return Libzstd()
    except (OSError, AttributeError):
        return None
