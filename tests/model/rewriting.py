"""What the files of an array hold, and programs that change them."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import tifffile

from tests.model import rewriter

PAGE = 4096
VIEWS = ("array.bin", "array.npy", "array.h5", "chunks/0/0/0", "chunks/0/1/0", "shards/0/0/0")
CHUNKED, IMAGE = "array.chunked.h5", "../image.ome.tif"


class Model:
    """What the files of an array hold.

    data : the bytes of all elements, little-endian and in C order.
    places : for each view, which of them each byte of its file is; -1: none of them.
    """

    def __init__(
        self,
        path: Path,
        elements: np.ndarray,
        shapes: dict[str, tuple[int, ...]],
        *,
        order: str = "C",
        big: bool = False,
    ) -> None:
        self.path = path
        self.shape = elements.shape
        self.data = np.frombuffer(elements.tobytes(), np.uint8).copy()
        self.before = self.data.copy()
        self._synced = self.data.copy()
        self._since: list[tuple[np.ndarray, np.ndarray]] = []
        self._item_size = elements.itemsize
        self._shapes, self._order, self._big = shapes, order, big
        self._frames: dict[str, tuple[int, int, bool]] = {}
        for view in VIEWS:
            if "/" not in view and (path / view).exists():
                self._frames[view] = self._frame((path / view).read_bytes())
        self.places: dict[str, np.ndarray] = {}
        self._find_places()
        if (path / IMAGE).exists():
            self._find_boxes()

    def _find_boxes(self) -> None:
        """Where files of boxes have elements, as the libraries of their formats say."""
        shape = self._shapes["chunks"]
        with h5py.File(self.path / CHUNKED) as file:
            data = file["0"]
            chunks = [data.id.get_chunk_info(n) for n in range(data.id.get_num_chunks())]
            offsets = {chunk.chunk_offset: chunk.byte_offset for chunk in chunks}
        self.places[CHUNKED] = self._boxes(CHUNKED, shape, offsets)
        offsets = {}
        with tifffile.TiffFile(self.path / IMAGE) as image:
            pages = image.series[0].levels[0].pages
            tile = (1, pages[0].tilelength, pages[0].tilewidth)
            across = -(-pages[0].imagewidth // tile[2])
            for plane, page in enumerate(pages):
                for number, offset in enumerate(page.dataoffsets):
                    row, column = divmod(number, across)
                    offsets[plane, row * tile[1], column * tile[2]] = offset
        self.places[IMAGE] = self._boxes(IMAGE, tile, offsets)

    def _boxes(
        self, view: str, shape: tuple[int, ...], offsets: dict[tuple[int, ...], int]
    ) -> np.ndarray:
        places = np.full((self.path / view).stat().st_size, -1)
        for origin, offset in offsets.items():
            part = self._numbers[tuple(slice(a, a + n) for a, n in zip(origin, shape, strict=True))]
            box = np.full((*shape, self._item_size), -1)
            box[tuple(map(slice, part.shape))] = part
            places[offset : offset + box.size] = box.reshape(-1)
        assert np.isin(self._numbers, places).all()
        return places

    def _frame(self, content: bytes) -> tuple[int, int, bool]:
        """Bytes before the elements and behind them, and whether these are big-endian."""
        for big in (self._big, not self._big):
            flat = self.data[self._flat(self._numbers, big=big)].tobytes()
            if (start := content.find(flat)) >= 0:
                return start, len(content) - start - len(flat), big
        raise AssertionError("no elements in the file")

    @property
    def _numbers(self) -> np.ndarray:
        return np.arange(self.data.size).reshape(*self.shape, self._item_size)

    def _flat(self, numbers: np.ndarray, *, big: bool) -> np.ndarray:
        if self._order == "F":
            *axes, last = range(numbers.ndim)
            numbers = numbers.transpose(*reversed(axes), last)
        return (numbers[..., ::-1] if big else numbers).reshape(-1)

    def _find_places(self) -> None:
        numbers = self._numbers
        for view in VIEWS:
            tree, *index = view.split("/")
            if view in self._frames:
                before, behind, big = self._frames[view]
                part = self._flat(numbers, big=big)
                self.places[view] = np.pad(part, (before, behind), constant_values=-1)
            elif index and (shape := self._shapes.get(tree)):
                starts = [int(i) * n for i, n in zip(index, shape, strict=True)]
                where = tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))
                part = numbers[where]
                whole = np.full((*shape, self._item_size), -1)
                whole[tuple(map(slice, part.shape))] = part
                self.places[view] = (whole[..., ::-1] if self._big else whole).reshape(-1)

    def resize(self, rows: int) -> None:
        """The array has so many rows now, new ones of fill value 0."""
        self.shape = (rows, *self.shape[1:])
        size = int(np.prod(self.shape)) * self._item_size
        grown = max(0, size - self.data.size)
        kept = [self.data, self.before, self._synced]
        self.data, self.before, self._synced = (np.pad(a[:size], (0, grown)) for a in kept)
        self._find_places()

    def wrote(self, view: str, start: int, new: bytes) -> None:
        places = self.places[view][start : start + len(new)]
        inside = places >= 0
        self.before[places[inside]] = self.data[places[inside]]
        self.data[places[inside]] = np.frombuffer(new, np.uint8)[inside]
        self.may_have_written(view, start, new)

    def may_have_written(self, view: str, start: int, new: bytes) -> None:
        """If the mount is killed."""
        places = self.places[view][start : start + len(new)]
        inside = places >= 0
        self._since.append((places[inside], np.frombuffer(new, np.uint8)[inside]))

    def synced(self) -> None:
        self._synced = self.data.copy()
        self._since.clear()

    def recover(self, stored: bytes, said: list[str]) -> None:
        """The mount was killed: each byte is as it was synced, or as it was written since."""
        found = np.frombuffer(stored, np.uint8).copy()
        good = found == self._synced
        for places, new in self._since:
            good[places] |= found[places] == new
        wrong = np.flatnonzero(~good)
        assert not wrong.size, f"lost: {wrong.size} bytes from {wrong[0]}, after {said[-20:]}"
        self.data, self.before = found, found.copy()
        self.synced()

    def check(self, said: list[str]) -> None:
        """Compare all files."""
        for view in self.places:
            self.compare(view, (self.path / view).read_bytes(), said)

    def compare(self, view: str, content: bytes, said: list[str], start: int = 0) -> None:
        """Compare bytes of a file from ``start`` on."""
        found, places = np.frombuffer(content, np.uint8), self.places[view][start:]
        if start:
            places = places[: found.size]
        assert found.size == places.size, f"{view}: {found.size} bytes after {said[-20:]}"
        wrong = np.flatnonzero((places >= 0) & (found != self.data[places]))
        assert not wrong.size, (
            f"{view}: {wrong.size} bytes from {start + wrong[0]}, after {said[-20:]}"
        )


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

    def answer(self) -> object:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the program ended ({self._process.wait(30)}) after {self._said[-20:]}"
        return json.loads(line)

    def do(self, *request: object) -> object:
        self.ask(*request)
        return self.answer()

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def kill(self) -> None:
        """What waits for a mount that is gone must end, too."""
        self._process.kill()
        self.end()

    # --- one step of the program, alone -----------------------------------------------

    def open(self) -> None:
        self.ask_to_open(self._dice.choice((os.O_RDWR, os.O_RDWR, os.O_WRONLY)))
        self.opened()

    def ask_to_open(self, flags: int) -> None:
        self.view = self._dice.choice(list(self._model.places))
        self._said.append(f"open {self.view} {flags}")
        self.ask("open", str(self._model.path / self.view), flags)

    def opened(self) -> None:
        self.mapped = bool(self.answer())
        self._said.append(f"opened {self.view} {self.mapped}")

    def look(self) -> None:
        """Compare what the open file holds, where it can be read."""
        for content in self.do("look"):
            self._model.compare(self.view, bytes.fromhex(content), [*self._said, "as it is open"])

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
        """As `cp` and shells do before they write."""
        self.do("truncate", str(self._model.path / self.view))
