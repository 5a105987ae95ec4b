"""The C library of a daemon uses freed memory again, without the kernel."""

import os
import subprocess
import sys

import pytest

from tests.conftest import run_python

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


def without_settings() -> dict[str, str]:
    """The environment without settings of the allocator, such as Dask's Nanny leaves there."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}


def faults(call: str) -> int:
    script = _SCRIPT.format(call=call)
    done = run_python("-c", script, check=True, env=without_settings())
    return int(done.stdout)


@pytest.mark.parametrize("call", ["keep_freed_memory()", "reuse_freed_memory()"])
def test_a_block_takes_the_pages_of_a_freed_one(call):
    before = faults("")
    if before < 256:
        pytest.skip("this C library, or huge pages, need no such help")
    assert faults(call) < before // 4


_THREADS = """
import threading
from zarrfs.memory.allocator import reuse_freed_memory
{call}
turns = [threading.Event() for _ in range(9)]
kept = []
def work(number):
    turns[number].wait()
    for _ in range(3):
        block = bytearray(8 << 20)
        block[::4096] = bytes(len(block) // 4096)
        kept.append(bytearray(100 << 10))
        del block
    turns[number + 1].set()
    turns[8].wait()
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
turns[0].set()
turns[8].wait()
print(int(open("/proc/self/statm").read().split()[1]) * 4 // 1024)
for thread in threads:
    thread.join()
"""


def test_threads_share_what_they_have_freed():
    def mebibytes(call: str) -> int:
        command = [sys.executable, "-c", _THREADS.format(call=call)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60, env=without_settings()
        )
        return int(done.stdout)

    # Each thread frees 8 MiB before the next one takes as much.
    assert mebibytes("reuse_freed_memory()") < mebibytes("") - 32


_LIMITED = """
import resource, threading
from zarrfs.memory.allocator import keep_freed_memory
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
keep_freed_memory()
all_have = threading.Barrier(9)
def work():
    block = bytearray(100 << 10)
    all_have.wait()
    all_have.wait()
    del block
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
all_have.wait()
print(int(open("/proc/self/statm").read().split()[0]) * 4 // 1024)
all_have.wait()
"""


def address_space_mib(limit: int) -> int:
    script = _LIMITED.format(limit=limit)
    done = run_python("-c", script, check=True, env=without_settings())
    return int(done.stdout)


def test_threads_reserve_nothing_where_address_space_is_limited():
    """Python hangs where it finds no memory even for the error (`Thread` of 3.11)."""
    before = address_space_mib(-1)
    assert address_space_mib(4 << 30) < before - 8 * 50
