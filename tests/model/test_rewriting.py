"""Several programs that write to the same bytes again and again, through all views of an array.

They do so in turns, so that the later write is known, or at the same time to bytes of their own.
Small writes, streams in pieces that begin and end anywhere, writes of whole pages, and stores in a
mapping, of old values too; between them, files are opened, truncated, and dropped from memory.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.model import rewriter
from tests.soak import TIMES

pytestmark = pytest.mark.timeout(90 * TIMES)

ROUNDS = 12 * TIMES
PROGRAMS = 3
PAGE = 4096
ARRAYS = {
    "plain": {"shape": (64, 32, 64), "chunks": (16, 16, 64), "compressors": None},
    "tall": {"shape": (64, 32, 64), "chunks": (64, 8, 8), "compressors": None},
    "sharded": {"shape": (60, 32, 64), "chunks": (10, 8, 16), "shards": (20, 16, 64)},
    "compressed": {"shape": (30, 50, 40), "chunks": (17, 20, 16)},
}
VIEWS = ("array.bin", "array.npy", "array.h5", "chunks/0/0/0", "chunks/0/1/0", "shards/0/0/0")


class Model:
    """What the files of an array hold.

    data : the bytes of all elements, in the order of ``array.bin``.
    places : for each view, which of them each byte of its file is; -1: none of them.
    """

    def __init__(
        self, path: Path, elements: np.ndarray, shapes: dict[str, tuple[int, ...]]
    ) -> None:
        self.path = path
        self.data = np.frombuffer(elements.tobytes(), np.uint8).copy()
        self.before = self.data.copy()
        numbers = np.arange(self.data.size).reshape(*elements.shape, elements.itemsize)
        self.places: dict[str, np.ndarray] = {}
        for view in VIEWS:
            if not (path / view).exists():
                continue
            content = (path / view).read_bytes()
            places = np.full(len(content), -1)
            tree, *index = view.split("/")
            part = numbers
            if index:
                shape = shapes[tree]
                starts = [int(i) * n for i, n in zip(index, shape, strict=True)]
                where = tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))
                whole = np.full((*shape, elements.itemsize), -1)
                part = numbers[where]
                whole[tuple(map(slice, part.shape))] = part
                part = whole
            start = 0 if index else content.find(elements.tobytes())
            places[start : start + part.size] = part.reshape(-1)
            self.places[view] = places

    def wrote(self, view: str, start: int, new: bytes) -> None:
        places = self.places[view][start : start + len(new)]
        inside = places >= 0
        self.before[places[inside]] = self.data[places[inside]]
        self.data[places[inside]] = np.frombuffer(new, np.uint8)[inside]

    def check(self, said: list[str]) -> None:
        """Compare all files."""
        for view, places in self.places.items():
            found = np.frombuffer((self.path / view).read_bytes(), np.uint8)
            inside = places >= 0
            wrong = np.flatnonzero(inside & (found != self.data[places]))
            assert not wrong.size, f"{view}: {wrong.size} bytes from {wrong[0]}, after {said[-12:]}"


class Program:
    """One process with one open file; see `tests.model.rewriter`."""

    def __init__(self, model: Model, dice: random.Random, said: list[str]) -> None:
        self._model, self._dice, self._said = model, dice, said
        self._process = subprocess.Popen(
            [sys.executable, rewriter.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.view = ""
        self.mapped = False
        self.open()

    def ask(self, *request: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> bool:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the program ended ({self._process.wait(30)}) after {self._said[-12:]}"
        return bool(json.loads(line))

    def do(self, *request: object) -> bool:
        self.ask(*request)
        return self.answer()

    def end(self) -> None:
        self._process.communicate(timeout=60)

    # --- one step of the program, alone -----------------------------------------------

    def open(self) -> None:
        self.view = self._dice.choice(list(self._model.places))
        flags = self._dice.choice((os.O_RDWR, os.O_RDWR, os.O_WRONLY))
        self.mapped = self.do("open", str(self._model.path / self.view), flags)
        self._said.append(f"open {self.view} {flags} {self.mapped}")

    def change(self, start: int, stop: int) -> None:
        """Change bytes of the file, by any way, alone."""
        for request, at, new in self.changes(start, stop):
            self._said.append(f"{self.view} {request[0]} {at} {len(new)} {request[3:]}")
            assert self.do(*request)
            self._model.wrote(self.view, at, new)

    def changes(self, start: int, stop: int) -> list[tuple[tuple[object, ...], int, bytes]]:
        """Requests that change bytes of the file, and what they write."""
        dice = self._dice
        way = dice.choice(("small", "stream", "stream", "pages", "store", "store", "old"))
        if way == "pages":
            start -= start % PAGE
            stop = min(len(self._model.places[self.view]), start + PAGE * dice.randint(1, 3))
        elif way in ("small", "old"):
            stop = min(stop, start + dice.choice((1, 2, 3, 8)))
        elif way == "store":
            stop = min(stop, start + dice.choice((1, 9, 5000)))
        places = self._model.places[self.view][start:stop]
        if (places < 0).any():
            # Headers stay what they are.
            (inside,) = np.nonzero(places >= 0)
            if not inside.size:
                return []
            end = inside[0] + int(np.argmax(np.append(places[inside[0] :] < 0, True)))
            start, stop, places = start + int(inside[0]), start + int(end), places[inside[0] : end]
        seed = dice.randrange(1 << 30)
        data = f"{seed}:{stop - start}"
        new = random.Random(seed).randbytes(stop - start)
        if way == "old":
            new = self._model.before[places].tobytes()
            data = new.hex()
        if way in ("store", "old") and self.mapped:
            return [(("store", start, data), start, new)]
        piece = dice.randint(4096, 256 << 10) if way == "stream" else len(new)
        return [(("write", start, data, piece), start, new)]

    def truncate(self) -> None:
        self.do("truncate", str(self._model.path / self.view))


@pytest.mark.soak
@pytest.mark.parametrize("kind", ARRAYS)
def test_rewriting(mounted, tmp_path, kind):
    """Each element has the value of the write that returned last."""
    made = ARRAYS[kind]
    array = zarr.create_array(tmp_path / "a.zarr", dtype="<u2", **made)
    first = np.random.default_rng(1).integers(0, 1 << 16, made["shape"], np.uint16)
    array[...] = first
    path = mounted(tmp_path / "a.zarr", "rw,flush_delay=5,memory=64M")
    shapes = {"chunks": made["chunks"], "shards": made.get("shards", ())}
    dice, said = random.Random(f"{kind} {TIMES}"), []
    model = Model(path, first, shapes)
    programs = [Program(model, dice, said) for _ in range(PROGRAMS)]
    try:
        for number in range(ROUNDS):
            said.append(f"round {number}")
            _take_turns(programs, model, dice)
            _all_at_once(programs, model, dice, said)
            for program in programs:
                program.ask("sync")
            for program in programs:
                assert program.answer()
            if not number % 4:
                model.check(said)
                stored = zarr.open_array(tmp_path / "a.zarr", mode="r")[...].tobytes()
                wrong = np.flatnonzero(np.frombuffer(stored, np.uint8) != model.data)
                assert not wrong.size, f"stored: {wrong[:9]}, after {said[-12:]}"
            dice.choice(programs).open()
            if not dice.randrange(4):
                dice.choice(programs).truncate()
    finally:
        for program in programs:
            program.end()
    stored = zarr.open_array(tmp_path / "a.zarr", mode="r")[...].tobytes()
    assert stored == model.data.tobytes()


def _take_turns(programs: list[Program], model: Model, dice: random.Random) -> None:
    """Changes of the same few places of the array, through one file after the other."""
    hot = [dice.randrange(model.data.size) for _ in range(3)]
    for _ in range(12):
        program = dice.choice(programs)
        places = model.places[program.view]
        (found,) = np.nonzero(places == dice.choice(hot))
        start = int(found[0]) if found.size else dice.randrange(len(places))
        start = max(0, start - dice.choice((0, 0, 1, 500, 20_000)))
        program.change(start, min(len(places), start + dice.choice((1, 5000, 100_000, 1 << 20))))


def _all_at_once(
    programs: list[Program], model: Model, dice: random.Random, said: list[str]
) -> None:
    """Changes of bytes that belong to one of the programs, in the same pages."""
    asked: list[tuple[Program, int]] = []
    page = dice.randrange(model.data.size // PAGE) * PAGE
    for mine, program in enumerate(programs):
        places = model.places[program.view]
        (found,) = np.nonzero((places >= page) & (places < page + PAGE))
        # Elements are divided among the programs, so that no two write to the same bytes.
        found = found[places[found] // 2 % PROGRAMS == mine][:20]
        for at in found.tolist():
            new = dice.randbytes(1)
            request = ("store",) if program.mapped and dice.random() < 0.5 else ("write",)
            more = (1,) if request == ("write",) else ()
            program.ask(*request, at, new.hex(), *more)
            model.wrote(program.view, at, new)
        said.append(f"{program.view} at once {len(found)}")
        asked.append((program, len(found)))
    for program, count in asked:
        assert all(program.answer() for _ in range(count))
