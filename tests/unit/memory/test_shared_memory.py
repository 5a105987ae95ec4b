"""Memory that forked processes share: handed out once, and given back."""

import math
import mmap
import os
import resource
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.memory import huge_pages, shared_memory
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.shared_memory import SharedMemory

PAGE = mmap.PAGESIZE
MIB = 1 << 20


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """However long huge pages take on a machine that has other things to do."""
    monkeypatch.setattr(huge_pages, "_PATIENCE", float("inf"))


@given(st.lists(st.tuples(st.integers(1, 9 * PAGE), st.booleans()), max_size=40))
def test_no_two_pieces_overlap(steps):
    memory = SharedMemory(64 * PAGE)
    held = []
    for number, (size, keep) in enumerate(steps):
        piece = memory.take(size)
        if piece is None:
            # There is no room behind, between or before what is held.
            assert sum(-(-len(p) // PAGE) for p in held) * PAGE + size > 8 * PAGE
            continue
        assert len(piece) == size
        piece[:] = number % 256
        held.append(piece)
        if not keep:
            del held[0]
        del piece
    edges = sorted((memory.offset(p), memory.offset(p) + len(p)) for p in held)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(edges))
    assert all(len(set(p.tolist())) == 1 for p in held)


def test_all_of_it_comes_back():
    memory = SharedMemory(8 * MIB)
    pieces = [memory.take(2 * MIB) for _ in range(4)]
    assert memory.take(1) is None
    pieces[2][:] = 7
    part = pieces[2].data[100:]
    del pieces
    assert memory.take(8 * MIB) is None  # a view of it is still in use
    del part
    again = memory.take(8 * MIB)
    assert again is not None
    # Its pages had gone back to the system.
    assert not again.any()


def test_another_process_sees_the_same():
    memory = SharedMemory(4 * MIB)
    piece = memory.take(MIB)
    target = piece.view(np.uint16)[:1000].reshape(10, 100).T
    place = memory.place(target)
    pid = os.fork()
    if pid == 0:
        seen = memory.array(place)
        seen[...] = np.arange(1000, dtype=np.uint16).reshape(100, 10)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.array_equal(target, np.arange(1000, dtype=np.uint16).reshape(100, 10))


def huge_bytes() -> int:
    """Of this process' shared memory, how much is mapped in huge pages."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("ShmemPmdMapped:"))


def resident() -> int:
    """Bytes of shared memory that this process has pages of."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssShmem:"))


class Map:
    """Notes what is advised for memory."""

    def __init__(self, real, calls):
        self._real = real
        self._calls = calls

    def __len__(self):
        return len(self._real)

    def madvise(self, *advice):
        self._calls.append(advice)
        self._real.madvise(*advice)


# What is asked for of 32 planes of 64 rows of 512 bytes each; the pages that this takes.
PARTS = [
    ((slice(None), slice(None), slice(None)), 256),
    ((slice(4, 8), slice(None), slice(None)), 32),
    ((slice(None), slice(0, 8), slice(None)), 32),
    ((slice(None), slice(8, 16), slice(0, 256)), 32),
    ((slice(0, 1), slice(0, 1), slice(0, 10)), 1),
    ((slice(0, 0), slice(None), slice(None)), 0),
]


@pytest.mark.parametrize(("part", "pages"), PARTS)
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0)], ids=["C", "F"])
def test_only_pages_that_are_wanted_are_made_ready(part, pages, axes, monkeypatch):
    memory = SharedMemory(4 * MIB)
    whole = memory.take(32 * 64 * 512).reshape(32, 64, 512)
    before = resident()
    calls = []
    monkeypatch.setattr(memory, "_map", Map(memory._map, calls))
    memory.populate(whole[part].transpose(axes))
    monkeypatch.undo()
    # A call for each plane at most.
    assert len(calls) <= 32
    made = resident() - before
    if not made and pages:
        pytest.skip("this kernel does not make pages ready on request")
    assert made == pages * PAGE
    whole[part] = 1
    assert resident() - before == pages * PAGE
    memory.populate(whole[part])  # again
    memory.populate(np.zeros(PAGE, np.uint8))  # elsewhere
    assert not whole[-1, -1, -1] or pages == 256


def test_only_pages_that_are_not_ready_yet_are_looked_at(monkeypatch):
    memory = SharedMemory(4 * MIB)
    whole = memory.take(100 * PAGE)
    memory.populate(whole[PAGE : 10 * PAGE])
    memory.populate(whole[60 * PAGE : 70 * PAGE])
    calls = []
    monkeypatch.setattr(memory, "_map", Map(memory._map, calls))
    memory.populate(whole[PAGE : 10 * PAGE])
    assert calls == []
    memory.populate(whole[5 * PAGE : 20 * PAGE + 1])
    memory.populate(whole[50 * PAGE : 65 * PAGE])
    start = memory.offset(whole)
    assert [(place - start, size) for _, place, size in calls] == [
        (10 * PAGE, 11 * PAGE),
        (50 * PAGE, 10 * PAGE),
    ]


@pytest.mark.parametrize(
    ("exist", "advice"), [(60, shared_memory.POPULATE_READ), (40, shared_memory.POPULATE_WRITE)]
)
def test_pages_that_another_process_made_are_mapped_for_writing(monkeypatch, exist, advice):
    """For the others it costs little which way all of them are prepared."""
    memory = SharedMemory(4 * MIB)
    whole = memory.take(100 * PAGE)
    offset = memory.offset(whole)
    pid = os.fork()
    if pid == 0:
        whole[: exist * PAGE] = ord("x")
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(bytes(whole[[39 * PAGE, 99 * PAGE]]) != b"y\x01")
    os.waitpid(pid, os.WUNTRACED)
    calls = []
    monkeypatch.setattr(memory, "_map", Map(memory._map, calls))
    memory.populate(whole)
    assert calls == [(advice, offset, 100 * PAGE)]
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    whole[::PAGE] += 1
    # One for each of the 100 pages if they were not mapped, and a few of numpy's own.
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 50
    os.kill(pid, signal.SIGCONT)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("before", [0, 1, 5 * PAGE, 3 * MIB])
def test_large_pieces_come_in_huge_pages(before):
    if not huge_pages_can_be_had():
        pytest.skip("this kernel makes no huge pages of shared memory on request")
    memory = SharedMemory(32 * MIB)
    others = [memory.take(before)] if before else []
    piece = memory.take(9 * MIB)
    piece[:] = 1
    mapped = huge_bytes()
    memory.back(piece)
    assert piece.all()  # what was there stays
    piece[:] = 2
    assert huge_bytes() - mapped == 8 * MIB
    memory.back(piece)
    # Again, when they have been given back.
    offset = memory.offset(piece)
    del piece
    again = memory.take(8 * MIB)
    assert memory.offset(again) == offset
    memory.back(again)
    assert not again.any()
    again[:] = 3
    assert huge_bytes() - mapped == 8 * MIB
    del others


def test_huge_pages_that_take_too_long_are_done_without(monkeypatch):
    if not huge_pages_can_be_had():
        pytest.skip("this kernel makes no huge pages of shared memory on request")
    monkeypatch.setattr(huge_pages, "_PATIENCE", -1.0)
    monkeypatch.setattr(huge_pages, "_SLACK", 0.0)
    memory = SharedMemory(64 * MIB)
    piece = memory.take(32 * MIB)
    mapped = huge_bytes()
    memory.back(piece)
    piece[:] = 1
    assert huge_bytes() - mapped == 2 * MIB  # the first that was asked for
    assert piece.all()
    # None is asked for soon after.
    other = memory.take(8 * MIB)
    memory.back(other)
    other[:] = 1
    assert huge_bytes() - mapped == 2 * MIB
    monkeypatch.setattr(huge_pages, "_PATIENCE", math.inf)
    memory.huge_pages._from = 0.0
    memory.back(other)
    assert huge_bytes() - mapped == 10 * MIB


def huge_pages_can_be_had() -> bool:
    memory = SharedMemory(4 * MIB)
    piece = memory.take(2 * MIB)
    mapped = huge_bytes()
    memory.back(piece)
    piece[:] = 1
    return huge_bytes() > mapped


def test_without_huge_pages_it_is_the_same_memory(monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(os, "memfd_create", refuse)
    memory = SharedMemory(8 * MIB)
    piece = memory.take(8 * MIB)
    memory.back(piece)
    piece[:] = 1
    assert piece.all()


def test_small_memory_is_not_asked_for_huge_pages():
    memory = SharedMemory(8 * PAGE)
    piece = memory.take(8 * PAGE)
    memory.back(piece)
    assert not piece.any()
    memory.back(np.zeros(8 * PAGE, np.uint8))


def test_what_lies_elsewhere_has_no_offset():
    memory = SharedMemory(PAGE)
    assert memory.offset(np.zeros(10)) is None
    assert memory.place(np.zeros(10)) is None


@pytest.mark.parametrize("shared", [True, False])
def test_arena_lends_the_kind_that_is_asked_for(shared):
    memory = SharedMemory(4 * MIB)
    arena = Arena(MemoryBudget(8 * MIB), shared=memory)
    for _ in range(3):
        wanted = arena.lend(MIB, shared=shared)
        assert (memory.offset(wanted) is not None) == shared
        del wanted
        other = arena.lend(MIB, shared=not shared)
        assert (memory.offset(other) is not None) != shared
        del other
