"""Decoders of C libraries, called through ctypes: libzstd and libdeflate.

https://facebook.github.io/zstd/zstd_manual.html
https://github.com/ebiggers/libdeflate/blob/master/libdeflate.h
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, TypeVar

import numpy as np

from zarrfs.foreign import DEFLATE_LIBRARY
from zarrfs.format.codec import Buffer

_T = TypeVar("_T")

# Bytes that take less time to copy than their address takes to find.
_SHORT = 8 << 10


class Contexts(threading.local):
    """One context of a library for each thread; the context ends with its thread.

    address : of this thread's context; to ask for it may raise MemoryError.
    """

    def __init__(self, create: Callable[[], int | None], free: Callable[[int], Any]) -> None:
        self._context = _Context(create(), free)
        self.address = self._context.address


def _loaded(library: Callable[[], _T]) -> _T | None:
    try:
        return library()
    except (ImportError, OSError, AttributeError):
        return None


class _Context:
    """A context that is freed with this object."""

    def __init__(self, address: int | None, free: Callable[[int], Any]) -> None:
        if address is None:
            raise MemoryError
        self.address = address
        self._free = free

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._free(self.address)


def source_of(data: Buffer) -> bytes | int:
    """The argument for input bytes: the bytes themselves, or an address."""
    if len(data) <= _SHORT:
        return bytes(data)
    return data if isinstance(data, bytes) else address_of_source(data)


def address_of_source(data: Buffer) -> int:
    """The address of memory that may be read-only, which ctypes does not accept."""
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address


target_of = (ctypes.c_char * 0).from_buffer
"""The argument for writable memory."""


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
        self._frame_length = self._function("findFrameCompressedSize", size, pointer, size)
        # For short inputs, with the interpreter's lock: they take less time than getting it back.
        held = ctypes.PyDLL("libzstd.so.1")
        self._short_frame_length = self._function(
            "findFrameCompressedSize", size, pointer, size, of=held
        )
        self._content_size = self._function(
            "getFrameContentSize", ctypes.c_ulonglong, pointer, size, of=held
        )
        self._contexts = Contexts(self._function("createDCtx", pointer), free)

    def _function(
        self, name: str, result: Any, *arguments: Any, of: ctypes.CDLL | None = None
    ) -> Any:
        function = getattr(of or self._library, f"ZSTD_{name}")
        function.restype, function.argtypes = result, arguments
        return function

    def fills(self, data: Buffer, target: Buffer) -> bool:
        """Whether ``data`` is exactly one frame that decodes to exactly the size of ``target``.

        Then ``target`` holds what it decodes to; otherwise its content is undefined.
        """
        source, length, size = source_of(data), len(data), len(target)
        if self._frame_length(source, length) != length:
            return False
        decoded: int = self._decompress(
            self._contexts.address, target_of(target), size, source, length
        )
        return decoded == size

    def fills_evenly(self, data: Sequence[Buffer], target: Buffer) -> bool:
        """As `fills`, for inputs that decode to parts of the target of one size.

        Each must say in its header what size it decodes to. They are decoded in one call, in
        place of many after each of which the interpreter's lock has to be taken again.
        """
        joined = b"".join(data)
        address, size = address_of_source(joined), len(target) // len(data)
        for each in data:
            length = len(each)
            if self._short_frame_length(address, length) != length:
                return False
            if self._content_size(address, length) != size:
                return False
            address += length
        decoded: int = self._decompress(
            self._contexts.address, target_of(target), len(target), joined, len(joined)
        )
        return decoded == len(target)


@cache
def libzstd() -> Libzstd | None:
    """The library; None if it cannot be called."""
    return _loaded(Libzstd)


class Libdeflate:
    """Decodes into any memory, and finds where a stream ends.

    The package `deflate` contains the library, but its own functions do neither. Raises
    ImportError, OSError or AttributeError if the package does not export its library.
    """

    def __init__(self) -> None:
        module = importlib.import_module(DEFLATE_LIBRARY.module)
        library = ctypes.CDLL(module.__file__)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        create, free = library.libdeflate_alloc_decompressor, library.libdeflate_free_decompressor
        create.restype, create.argtypes = pointer, ()
        free.restype, free.argtypes = None, (pointer,)
        self._contexts = Contexts(create, free)
        self._functions = {
            "gzip": library.libdeflate_gzip_decompress_ex,
            "zlib": library.libdeflate_zlib_decompress_ex,
        }
        for function in self._functions.values():
            function.restype = ctypes.c_int
            function.argtypes = (pointer, pointer, size, pointer, size, pointer, pointer)

    def fills(self, form: Literal["gzip", "zlib"], data: Buffer, target: memoryview) -> bool:
        """Whether ``data`` are exactly one stream whose decoded bytes fill ``target``.

        If so, ``target`` holds the decoded bytes; otherwise its content is undefined.
        """
        if not len(data) or not len(target):
            return False
        used = ctypes.c_size_t()
        failed = self._functions[form](
            self._contexts.address,
            source_of(data),
            len(data),
            target_of(target),
            len(target),
            ctypes.byref(used),
            None,  # as many bytes as fit
        )
        return not failed and used.value == len(data)


@cache
def libdeflate() -> Libdeflate | None:
    """The library; None if it cannot be called."""
    return _loaded(Libdeflate)
