"""The decoding process: answers one request after the other, until its input ends."""

from __future__ import annotations

import json
import os
import resource
import sys
from importlib import import_module
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from zarrfs.errors import reason_of
from zarrfs.isolation.interpreter import end_with

REQUEST = Struct("<IQQQ?")
"""Bytes of the parameters (JSON) and of the data, which follow; of memory; of the result, and
whether the result must have exactly so many bytes, or at most."""

REPLY = Struct("<BQ")
"""Whether the request failed, and the bytes of the result or of the reason, which follow."""


def main() -> None:
    """Answer requests with the function ``decode`` of the module that is the first argument.

    The function takes the parameters and the data, and raises ValueError for bad data. The second
    argument is a pipe that the parent keeps open; see `end_with`.
    """
    end_with(int(sys.argv[2]))
    # Core dumps of crashes would fill the disk with hostile data.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Packages print: that is no reply.
    os.dup2(2, 1)
    decode = import_module(sys.argv[1]).decode
    while (head := _read(requests, REQUEST.size)) is not None:
        parameters, size, memory, expected, exact = REQUEST.unpack(head)
        text, data = _read(requests, parameters), _read(requests, size)
        if text is None or data is None:
            return
        try:
            _allow(memory)
            result = decode(json.loads(text), data)
            if len(result) > expected or (exact and len(result) < expected):
                allowed = f"expected {expected}" if exact else f"at most {expected} are allowed"
                raise ValueError(f"decodes to {len(result)} bytes, {allowed}")
            failed = False
        except Exception as error:  # noqa: BLE001 - any exception is caused by the data
            failed, result = True, reason_of(error).encode()[:1000]
        replies.write(REPLY.pack(failed, len(result)))
        replies.write(result)
        replies.flush()


def _read(file: BinaryIO, size: int) -> bytes | None:
    data = file.read(size)
    return data if len(data) == size else None


def _allow(memory: int) -> None:
    """Limit the memory to so many bytes beyond those in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + memory
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
