"""Helpers for calling decoders of C libraries: contexts for each thread, and addresses."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from zarrfs.format.codec import Buffer


class Contexts:
    """One context of a library for each thread; the context ends with its thread."""

    def __init__(self, create: Callable[[], int | None], free: Callable[[int], Any]) -> None:
        self._create = create
        self._free = free
        self._threads = threading.local()

    def own(self) -> int:
        """The address of this thread's context. Raises MemoryError."""
        context: _Context | None = getattr(self._threads, "context", None)
        if context is None:
            context = self._threads.context = _Context(self._create(), self._free)
        return context.address


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
    return data if isinstance(data, bytes) else address_of_source(data)


def address_of_source(data: Buffer) -> int:
    """The address of memory that may be read-only, which ctypes does not accept."""
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address


def address_of(target: Buffer) -> int:
    """The address of writable memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(target))
