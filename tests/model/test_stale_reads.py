"""After a sync, every file of an array has what was written, however it is read."""

import mmap
import os
import random
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.model.rewriting import PAGE, Model, Program
from tests.soak import TIMES

pytestmark = pytest.mark.timeout(150)

ROUNDS = 12 * TIMES
SHAPE, CHUNKS, SHARDS = (12, 16, 48), (4, 8, 24), (12, 16, 24)
OPTIONS = ("memory=64M", "order=F", "recheck=always", "memory=16M,byteorder=big")


class Reader:
    """A file that is open for reading all the time, and its mapping."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY)
        stack.callback(os.close, self._file)
        self._size = os.fstat(self._file).st_size
        self._mapped = stack.enter_context(mmap.mmap(self._file, 0, prot=mmap.PROT_READ))

    def read(self) -> dict[str, bytes]:
        return {
            "mapped": self._mapped[:],
            "open": os.pread(self._file, self._size, 0),
            "opened now": self._path.read_bytes(),
        }


@pytest.mark.soak
@pytest.mark.parametrize("options", OPTIONS)
def test_stale_reads(mounted, tmp_path, options):
    """Another program opens and reads files while they are written to, and writes to its own."""
    first = np.random.default_rng(1).integers(0, 1 << 16, SHAPE, np.uint16)
    zarr.create_array(tmp_path / "a.zarr", data=first, chunks=CHUNKS, shards=SHARDS)
    path = mounted(tmp_path / "a.zarr", f"rw,{options}")
    order, big = "F" if "order=F" in options else "C", "byteorder=big" in options
    model = Model(path, first, {"chunks": CHUNKS, "shards": SHARDS}, order=order, big=big)
    dice, said = random.Random(f"{options} {TIMES}"), list[str]()
    writer, opener = (Program(model, dice, said) for _ in range(2))
    with ExitStack() as stack:
        stack.callback(opener.end)
        stack.callback(writer.end)
        readers = {view: Reader(path / view, stack) for view in model.places}
        for number in range(ROUNDS):
            del said[:-50]
            said.append(f"round {number}")
            if not dice.randrange(8):
                writer.open()
            opener.ask_to_open(dice.choice((os.O_RDONLY, os.O_RDWR)))
            opener.ask("look")
            size = len(model.places[writer.view])
            start = dice.randrange(size)
            writer.change(start, min(size, start + dice.choice((1, 100, PAGE, 3 * PAGE))))
            assert writer.do("sync")
            opener.opened()
            opener.answer()
            for view, reader in readers.items():
                for way, content in reader.read().items():
                    model.compare(view, content, [*said, way])
            opener.look()
            if opener.mapped:
                # Its pages must not undo what the other one wrote.
                start = dice.randrange(len(model.places[opener.view]) - 9)
                opener.change(start, start + 9)
                assert opener.do("sync")
                writer.look()
    stored = np.asarray(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], "<u2")
    assert stored.tobytes() == model.data.tobytes()
