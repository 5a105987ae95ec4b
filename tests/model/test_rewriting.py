"""Several programs that write to the same bytes again and again, through all views of an array.

They do so in turns, so that the later write is known, or at the same time to bytes of their own.
Small writes, streams in pieces that begin and end anywhere, writes of whole pages, and stores in a
mapping, of old values too. Meanwhile files are opened and chunks are removed; in between, files are
truncated, caches dropped, metadata read again, arrays resized, workers and the daemon killed.
"""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.conftest import Daemon, Mounter
from tests.images import make_image
from tests.model.rewriting import CHUNKED, IMAGE, PAGE, Model, Program
from tests.mount.workers.test_workers import workers_of
from tests.soak import EXHAUSTIVE, TIMES
from zarrfs.daemon.control import control
from zarrfs.daemon.inquiry import NoAnswer

pytestmark = pytest.mark.timeout(150)

ROUNDS = 4 * TIMES
PROGRAMS = 3
ARRAYS: dict[str, dict[str, Any]] = {
    "plain": {"shape": (64, 32, 64), "chunks": (16, 16, 64), "compressors": None},
    "tall": {"shape": (64, 32, 64), "chunks": (64, 8, 8), "compressors": None},
    "sharded": {"shape": (60, 32, 64), "chunks": (10, 8, 16), "shards": (20, 16, 64)},
    "compressed": {"shape": (30, 50, 40), "chunks": (17, 20, 16)},
    "image": {"shape": (2, 150, 100), "chunks": (1, 64, 64), "dimension_names": "zyx"},
}
# Name, array, options.
RUNS = {
    "tall": ("tall", "memory=64M"),
    "transposed": ("compressed", "order=F"),
    "always": ("plain", "recheck=always"),
    "big-endian": ("sharded", "memory=16M,byteorder=big"),
    "resized": ("compressed", "resize"),
    "boxes": ("image", "views=all"),
}
if EXHAUSTIVE:
    RUNS |= {kind: (kind, "memory=64M") for kind in ("plain", "sharded", "compressed")}


class Rewriting:
    """A mount of one array, and the programs that write to it."""

    def __init__(self, mount: Mounter, directory: Path, run: str) -> None:
        kind, options = RUNS[run]
        self._mount = mount
        self._source, self._array = directory / "a.zarr", directory / "a.zarr"
        self._options = f"rw,allow_remove,workers=3,flush_delay=5,{options}"
        made = ARRAYS[kind]
        first = np.random.default_rng(1).integers(0, 1 << 16, made["shape"], np.uint16)
        if kind == "image":
            make_image(self._source, "zyx", made["shape"], made["chunks"])
            self._array /= "0"
        zarr.create_array(self._array, dtype="<u2", overwrite=True, **made)[...] = first
        self._daemon: Daemon = mount(self._source, self._options, quiet=False)
        self._dice, self._said = random.Random(f"{run} {TIMES}"), list[str]()
        shapes = {tree: made[tree] for tree in ("chunks", "shards") if tree in made}
        order, big = "F" if "order=F" in options else "C", "byteorder=big" in options
        self._path = self._daemon.path / self._array.relative_to(self._source)
        self._model = Model(self._path, first, shapes, order=order, big=big)
        assert ({CHUNKED, IMAGE} <= self._model.places.keys()) == (kind == "image")
        self._resizes = "resize" in options
        self._programs = [self._program() for _ in range(PROGRAMS)]
        self.happened: Counter[str] = Counter()

    def _program(self) -> Program:
        return Program(self._model, self._dice, self._said)

    @property
    def _stored(self) -> bytes:
        return np.asarray(zarr.open_array(self._array, mode="r")[...], "<u2").tobytes()

    def _check_stored(self) -> None:
        stored = np.frombuffer(self._stored, np.uint8)
        wrong = np.flatnonzero(stored != self._model.data)
        assert not wrong.size, f"stored: {wrong[:9]}, after {self._said[-20:]}"

    def one_round(self) -> None:
        del self._said[:-100]
        self._said.append(f"round {self.happened['rounds']}")
        self._take_turns()
        self._open_beside_writes()
        self._all_at_once()
        self._sync()
        self._model.check(self._said)
        for program in self._programs:
            program.look()
        if not self.happened["rounds"] % 4:
            self._check_stored()
        self._dice.choice(self._programs).open()
        choices = [self._truncate, self._drop, self._reload, self._kill_worker, self._kill_daemon]
        if self._resizes:
            choices += 2 * [self._resize]
        if not self._dice.randrange(2):
            event = self._dice.choice(choices)
            event()
            self.happened[event.__name__.strip("_")] += 1
        self.happened["rounds"] += 1

    def end(self) -> None:
        for program in self._programs:
            program.end()
        self._check_stored()
        self._daemon.umount()
        assert self._daemon.wait() == 0
        self._check_stored()

    def give_up(self) -> None:
        for program in self._programs:
            program.kill()

    # --- parts of a round -------------------------------------------------------------

    def _take_turns(self) -> None:
        """Changes of the same few places of the array, through one file after the other."""
        model, dice = self._model, self._dice
        hot = [dice.randrange(model.data.size) for _ in range(3)]
        for _ in range(12):
            program = dice.choice(self._programs)
            if not dice.randrange(60):
                self._remove()
            program.change(*self._somewhere(program, dice.choice(hot)))

    def _somewhere(self, program: Program, place: int) -> tuple[int, int]:
        """A part of its file, about an element if it has that."""
        dice, places = self._dice, self._model.places[program.view]
        (found,) = np.nonzero(places == place)
        start = int(found[0]) if found.size else dice.randrange(len(places))
        start = max(0, start - dice.choice((0, 0, 1, 500, 20_000)))
        return start, min(len(places), start + dice.choice((1, 5000, 100_000, 1 << 20)))

    def _remove(self) -> None:
        """A file of a chunk or shard; its elements are fill value then."""
        view = self._dice.choice([view for view in self._model.places if view[0] in "cs"])
        self._said.append(f"remove {view}")
        (self._model.path / view).unlink()
        self._model.wrote(view, 0, bytes(len(self._model.places[view])))
        self.happened["remove"] += 1

    def _open_beside_writes(self) -> None:
        """One program opens another file while the others write to the array."""
        opener, *others = self._dice.sample(self._programs, PROGRAMS)
        writing = others[: 1 + self._dice.randrange(2)]
        asked = []
        owned = np.zeros(self._model.data.size, bool)
        for program in writing:
            place = self._dice.randrange(self._model.data.size)
            for request, at, new in program.changes(*self._somewhere(program, place)):
                places = self._model.places[program.view][at : at + len(new)]
                places = places[places >= 0]
                # No two write to the same bytes.
                if not owned[places].any():
                    owned[places] = True
                    self._said.append(f"{program.view} {request[0]} {at} {len(new)} beside")
                    program.ask(*request)
                    asked.append((program, at, new))
        opener.ask_to_open(os.O_RDWR)
        opener.ask("look")
        opener.opened()
        opener.answer()
        for program, at, new in asked:
            assert program.answer()
            self._model.wrote(program.view, at, new)
            assert program.do("sync")
        opener.look()

    def _all_at_once(self) -> None:
        """Changes of bytes that belong to one of the programs, in the same pages."""
        model, dice = self._model, self._dice
        asked: list[tuple[Program, int]] = []
        page = dice.randrange(model.data.size // PAGE) * PAGE
        for mine, program in enumerate(self._programs):
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
            self._said.append(f"{program.view} at once {len(found)}")
            asked.append((program, len(found)))
        for program, count in asked:
            assert all(program.answer() for _ in range(count))

    def _sync(self) -> None:
        for program in self._programs:
            program.ask("sync")
        for program in self._programs:
            assert program.answer()
        self._model.synced()

    # --- between two rounds -----------------------------------------------------------

    def _truncate(self) -> None:
        """As `cp` and shells do; where the size can change, it would."""
        if not self._resizes:
            self._dice.choice(self._programs).truncate()

    def _drop(self) -> None:
        # It asks the mount for its status first, which a busy machine may be slow to answer.
        with suppress(NoAnswer):
            control(str(self._daemon.path), {"command": "drop"})

    def _reload(self) -> None:
        self._daemon.signal(signal.SIGHUP)

    def _resize(self) -> None:
        view = self._dice.choice(["array.bin", "array.npy"])
        rows = self._dice.randint(17, 40)
        path = self._model.path / view
        row = self._model.data.size // self._model.shape[0]
        self._said.append(f"resize {view} {rows}")
        os.truncate(path, path.stat().st_size + (rows - self._model.shape[0]) * row)
        self._model.resize(rows)
        for program in self._programs:
            if "/" not in program.view:
                program.open()

    def _kill_worker(self) -> None:
        """While programs write."""
        for program in self._programs:
            place = self._dice.randrange(self._model.data.size)
            for request, at, new in program.changes(*self._somewhere(program, place)):
                program.ask(*request)
                for worker in workers_of(self._daemon.pid)[:1]:
                    os.kill(worker, signal.SIGKILL)
                assert program.answer()
                self._model.wrote(program.view, at, new)
                assert program.do("sync")
        self._sync()

    def _kill_daemon(self) -> None:
        """While programs write; what was synced before is there."""
        for program in self._programs:
            place = self._dice.randrange(self._model.data.size)
            for request, at, new in program.changes(*self._somewhere(program, place)):
                program.ask(*request)
                program.ask("sync")
                self._model.may_have_written(program.view, at, new)
        time.sleep(self._dice.random() * 0.02)
        self._daemon.signal(signal.SIGKILL)
        assert self._daemon.wait() == -signal.SIGKILL
        for program in self._programs:
            program.kill()
        self._mount.end(self._daemon)
        self._model.recover(self._stored, self._said)
        path = self._daemon.path
        self._daemon = self._mount(self._source, self._options, quiet=False, at=path)
        self._programs[:] = [self._program() for _ in range(PROGRAMS)]


@pytest.mark.soak
@pytest.mark.parametrize("run", RUNS)
def test_rewriting(mount_daemon, tmp_path, run):
    """Each element has the value of the write that returned last."""
    rewriting = Rewriting(mount_daemon, tmp_path, run)
    try:
        for _ in range(ROUNDS):
            rewriting.one_round()
        rewriting.end()
    except BaseException:
        rewriting.give_up()
        raise
    print(run, dict(rewriting.happened))
