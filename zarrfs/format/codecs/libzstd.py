"""Decodes with the system's libzstd.

https://facebook.github.io/zstd/zstd_manual.html
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, EncodedBatch
from zarrfs.format.codecs.native import Contexts, address_of, address_of_source, source_of


class Libzstd:
    """Decodes a tenth faster than Python packages do, and into any memory.

    The system's library is mostly built with its assembler code, unlike those of the packages.
    Each thread also reuses one context. Raises OSError or AttributeError if there is no such
    library.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libzstd.so.1")
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        free = self._function("freeDCtx", size, pointer)
        self._decompress = self._function(
            "decompressDCtx", size, pointer, pointer, size, pointer, size
        )
        self._is_error = self._function("isError", ctypes.c_uint, size)
        self._error_name = self._function("getErrorName", ctypes.c_char_p, size)
        self._contexts = Contexts(self._function("createDCtx", pointer), free)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._library, f"ZSTD_{name}")
        function.restype, function.argtypes = result, arguments
        return function

    def decompress(self, data: Buffer, target: Buffer) -> None:
        """Decode all frames of ``data`` into ``target``, which they have to fill.

        Raises DecodeError.
        """
        size = self._decompress(
            self._contexts.own(), address_of(target), len(target), source_of(data), len(data)
        )
        if size == len(target):
            return
        if self._is_error(size):
            raise DecodeError(f"Zstandard: {self._error_name(size).decode()}")
        raise DecodeError(f"Zstandard frames hold {size} bytes, expected {len(target)}")

    def decompress_many(self, encoded: EncodedBatch, out: memoryview, size: int) -> bool:
        """As `decompress` for each input, in order; False if that would raise for one of them.

        encoded : for each chunk one frame whose header gives a size of ``size`` bytes. Adjacent
            frames are decoded in one call, which waits for the interpreter only once: the library
            refuses a frame that holds more or fewer bytes than its header gives.
        """
        context, decompress = self._contexts.own(), self._decompress
        addresses: dict[int, int] = {}
        target = address_of(out)
        for number, start, stop, count in _side_by_side(encoded.parts):
            if number >= 0:
                piece = encoded.pieces[number]
                source: Buffer | int = piece
                if start or not isinstance(piece, bytes):  # whole bytes need no address
                    if (address := addresses.get(number)) is None:
                        address = addresses[number] = address_of_source(piece)
                    source = address + start
                wanted = count * size
                if decompress(context, target, wanted, source, stop - start) != wanted:
                    return False
            target += count * size
        return True


def _side_by_side(
    parts: Sequence[tuple[int, int, int] | None],
) -> Iterator[tuple[int, int, int, int]]:
    """Join parts that are adjacent in one piece; yields each with its number of parts.

    The piece -1 stands for a chunk that is not stored.
    """
    number, start, stop, count = -1, 0, 0, 0
    for part in parts:
        other, first, end = part or (-1, 0, 0)
        if other == number and first == stop:
            stop = end
            count += 1
            continue
        if count:
            yield number, start, stop, count
        number, start, stop, count = other, first, end, 1
    if count:
        yield number, start, stop, count


@cache
def libzstd() -> Libzstd | None:
    """The library; None if the system has none."""
    try:
        return Libzstd()
    except (OSError, AttributeError):
        return None
