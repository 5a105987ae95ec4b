"""Another program replaces all objects of an array while files of a mount are read.

An open after that shows the new elements, all of them, also if loads were under way. No read mixes
states within a chunk, and no read has elements that were replaced before the file was opened.
"""

import functools
import itertools
import math
import mmap
import os
import random
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr
from zarr.codecs import GzipCodec

from tests.remote_server import Link, RemoteServer
from tests.soak import EXHAUSTIVE, TIMES

pytestmark = pytest.mark.timeout(120)

CHANGES = 3 * TIMES
VALUES = 16
READERS = 2
SLOW = [GzipCodec(level=9)]


class Kind(NamedTuple):
    """
    array : as for `zarr.create_array`.
    path : the file that is read.
    piece : bytes of one read; 0: any few KiB in the file.
    """

    array: dict[str, Any]
    path: str = "array.bin"
    piece: int = 1 << 20
    options: str = ""


KINDS = {
    "chunks": Kind({"shape": (40, 40), "chunks": (20, 20), "compressors": SLOW}),
    "chunk file": Kind({"shape": (90, 500), "chunks": (30, 500)}, "chunks/1/0"),
    "inner chunks": Kind({"shape": (40, 60), "chunks": (10, 20), "shards": (20, 60)}),
    "slabs": Kind({"shape": (64, 128, 128), "chunks": (8, 64, 64), "compressors": SLOW}),
    "stripes": Kind(
        {"shape": (30, 512, 1024), "chunks": (30, 64, 1024)}, options="memory=24M", piece=1 << 19
    ),
    "parts": Kind({"shape": (4, 1 << 19), "chunks": (1, 1 << 19), "compressors": None}, piece=0),
    "strings": Kind({"shape": (40,), "chunks": (10,), "dtype": "string"}, "array.jsonl"),
    "group": Kind({"shape": (40, 40), "chunks": (20, 20)}, "../group.h5"),
}


SOME = ("chunks", "slabs", "parts", "group")


@pytest.fixture
def replace(where, tmp_path) -> Iterator[tuple[str, Callable[[str, bytes], None]]]:
    """The source, and a function that replaces one object in it."""
    if where == "local":
        place, numbers = tmp_path / "g.zarr", itertools.count()

        def put(key: str, data: bytes) -> None:
            (place / key).parent.mkdir(parents=True, exist_ok=True)
            new = tmp_path / f"new{next(numbers)}"
            new.write_bytes(data)
            os.replace(new, place / key)

        yield str(place), put
        return
    with RemoteServer(Link(latency_s=0.004)) as server:
        server.make_bucket("b")
        yield f"{server.url}/b/g.zarr", lambda key, data: server.put("b", f"g.zarr/{key}", data)


@functools.cache
def objects(name: str, value: int) -> dict[str, bytes]:
    """Those of the group whose array has this value in all elements."""
    made = {"dtype": "u1", **KINDS[name].array}
    group = zarr.create_group(store := {})
    array = group.create_array("a", **made)
    array[...] = f"{value:03}" if made["dtype"] == "string" else value + 100
    with warnings.catch_warnings(action="ignore"):
        zarr.consolidate_metadata(group.store)
    return {key: data.to_bytes() for key, data in store.items()}


class Changing:
    """A store that changes, and its mount.

    state : all objects have it by now; it grows.
    """

    def __init__(self, name: str, put: Callable) -> None:
        self._name, self._kind, self._put = name, KINDS[name], put
        self.path = Path()
        self.state = 0
        self.over = False
        self.reads = 0
        self._elements: np.ndarray | None = None

    def change(self, dice: random.Random) -> None:
        changed = list(objects(self._name, (self.state + 1) % VALUES).items())
        dice.shuffle(changed)
        for key, data in changed:
            if not key.endswith("zarr.json") or not self.state:
                self._put(key, data)
        self.state += 1

    def find_elements(self) -> None:
        """Which bytes of a file that has others, too."""
        if self._kind.path.endswith(".h5"):
            first = np.frombuffer(self.path.read_bytes(), np.uint8)
            self._elements = np.flatnonzero(first == 100 + self.state % VALUES)

    def read(self, dice: random.Random) -> tuple[np.ndarray, bool]:
        """Values in the file, and whether they were read by one request, from its start on."""
        if self._kind.path == "array.bin" and self._kind.piece and dice.randrange(2):
            return self._read_at_once() - 100, True
        with self.path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if not self._kind.piece:
                at = dice.randrange(size)
                return np.frombuffer(os.pread(file.fileno(), 4096, at), np.uint8) - 100, False
            content = b"".join(iter(lambda: file.read(self._kind.piece), b""))
        if self._kind.path.endswith(".jsonl"):
            return np.array([int(text) for text in re.findall(rb"\d{3}", content)]), False
        found = np.frombuffer(content, np.uint8)
        if self._elements is not None:
            return found[self._elements] - 100, False
        return found - 100, False

    def _read_at_once(self) -> np.ndarray:
        """Up to 1 MiB by one request, past the page cache."""
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 1 << 20) as buffer:
            try:
                size = os.preadv(file, [buffer], 0)
            finally:
                os.close(file)
            return np.frombuffer(buffer[:size], np.uint8)

    def check(self, dice: random.Random, *, quiet: bool) -> None:
        """Open and read. If the store is ``quiet`` meanwhile, only the present state is right."""
        opened = self.state
        values, at_once = self.read(dice)
        assert values.size
        # How many states later than the one at the open.
        later = (values.astype(int) - opened) % VALUES
        most = 0 if quiet else self.state + 1 - opened
        assert (later <= most).all(), f"{set(later.tolist())} beside {most} at {opened}"
        if at_once:
            _, *row = self._kind.array["shape"]
            first, *_ = steps = self._kind.array["chunks"]
            length = math.prod(row)
            rows = values.size // length // first * first
            grid = values[: rows * length].reshape(rows, *row)
            for index in itertools.product(*map(range, _counts(grid.shape, steps))):
                where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, steps, strict=True))
                assert len(np.unique(grid[where])) == 1, f"two states in chunk {index}"
        self.reads += 1

    def keep_reading(self, seed: int) -> None:
        dice = random.Random(seed)
        while not self.over:
            self.check(dice, quiet=False)


def _counts(shape: tuple[int, ...], steps: tuple[int, ...]) -> list[int]:
    return [-(-n // step) for n, step in zip(shape, steps, strict=True)]


@pytest.mark.soak
@pytest.mark.parametrize(("where", "name"), [
    *(("local", name) for name in KINDS),
    *(("remote", name) for name in KINDS if EXHAUSTIVE or name in SOME),
])  # fmt: skip
def test_changes_under_loads(mounted, replace, name):
    kind = KINDS[name]
    source, put = replace
    changing = Changing(name, put)
    dice = random.Random(f"{name} {TIMES}")
    changing.change(dice)
    path = mounted(source, "recheck=always", *filter(None, [kind.options]))
    changing.path = Path(os.path.normpath(path / "a" / kind.path))
    changing.find_elements()
    wait = threading.Event().wait
    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(changing.keep_reading, seed) for seed in range(READERS)]
        try:
            for _ in range(CHANGES):
                wait(dice.random() * 0.03)
                changing.change(dice)
                changing.check(dice, quiet=True)
        finally:
            changing.over = True
        for reader in readers:
            reader.result(60)
    print(name, changing.state, changing.reads)
