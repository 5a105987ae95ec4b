"""The C library of a daemon uses freed memory again, without the kernel."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Faults of the pages of a block of 2 MiB whose predecessor has just been freed.
_SCRIPT = """
import resource
from zarrfs.memory.allocator import keep_freed_memory, reuse_freed_memory
{call}
# A small block behind the large one: its memory is not at the end of the heap.
block, behind = bytearray(2 << 20), bytearray(100 << 10)
del block
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = bytearray(2 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(call: str) -> int:
    script = _SCRIPT.format(call=call)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.parametrize("call", ["keep_freed_memory()", "reuse_freed_memory()"])
def test_a_block_takes_the_pages_of_a_freed_one(call):
    before = faults("")
    if before < 256:
        pytest.skip("this C library, or huge pages, need no such help")
    assert faults(call) < before // 4
