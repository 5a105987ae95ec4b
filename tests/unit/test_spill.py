"""Decoded chunks in a file: what was put there, or nothing."""

from __future__ import annotations

import os
import random
import threading

import pytest

from zarrfs.memory.spill import Spill


def chunk(number: int, state: int = 0) -> bytes:
    return bytes((number * 7 + state + i) % 251 for i in range(64))


def read(spill: Spill, number: int, state: int = 0, offset: int = 0, size: int = 64):
    out = memoryview(bytearray(size))
    return bytes(out) if spill.read((number,), (state,), offset, out) else None


@pytest.fixture
def spill(tmp_path):
    return Spill(str(tmp_path), 4, 64)


def test_first_in_first_out(spill):
    for number in range(6):
        spill.put((number,), (0,), memoryview(chunk(number)))
    assert [read(spill, number) is not None for number in range(6)] == [False] * 2 + [True] * 4
    assert read(spill, 3) == chunk(3)
    assert read(spill, 5, offset=10, size=7) == chunk(5)[10:17]


def test_of_one_state_of_the_array(spill):
    spill.put((1,), (0,), memoryview(chunk(1)))
    assert read(spill, 1, state=1) is None
    spill.put((2,), (1,), memoryview(chunk(2, 1)))
    assert read(spill, 1) is None
    assert read(spill, 2, state=1) == chunk(2, 1)


def test_the_space_is_given_back(spill):
    spill.put((1,), (0,), memoryview(chunk(1)))
    spill.clear()
    assert read(spill, 1) is None
    spill.put((1,), (0,), memoryview(chunk(3)))
    assert read(spill, 1) == chunk(3)


def test_the_file_has_no_name(spill, tmp_path):
    spill.put((1,), (0,), memoryview(chunk(1)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("directory", ["missing", "full"])
def test_where_nothing_can_be_kept(tmp_path, directory):
    slots = 1 << 50 if directory == "full" else 4
    spill = Spill(str(tmp_path / directory if directory == "missing" else tmp_path), slots, 64)
    spill.put((1,), (0,), memoryview(chunk(1)))
    assert read(spill, 1) is None


def test_threads_never_see_another_chunk(spill):
    wrong = []

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(3000):
            number, state = choose.randrange(12), choose.randrange(50) // 49
            if choose.random() < 0.5:
                spill.put((number,), (state,), memoryview(chunk(number, state)))
            else:
                offset = choose.randrange(60)
                found = read(spill, number, state, offset, 4)
                if found not in (None, chunk(number, state)[offset : offset + 4]):
                    wrong.append((number, state))
            if choose.random() < 0.01:
                spill.clear()

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
