"""Files that somebody swaps for links, pipes, directories and other files, again and again."""

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Swapper:
    """Swaps a file for another thing, again and again, in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._original = path.read_bytes()
        self._outside = path.parents[len(path.parts) - 1 - path.parts.index("root")] / "outside"
        self._random = random.Random(1)
        self._ended = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        kinds: tuple[Callable[[Path], None], ...] = (
            lambda path: None,
            lambda path: path.write_bytes(self._original),
            lambda path: path.write_bytes(bytes(reversed(self._original))),
            lambda path: path.write_bytes(self._original[: len(self._original) // 2]),
            lambda path: path.symlink_to(self._outside / "secret"),
            lambda path: path.symlink_to(self._outside),
            lambda path: path.symlink_to(path.name),
            os.mkfifo,
            lambda path: path.mkdir(),
        )
        while not self._ended.is_set():
            self._random.choice(kinds)(self._free())
            self.rounds += 1
        self._free().write_bytes(self._original)

    def end(self) -> None:
        self._ended.set()

    def _free(self) -> Path:
        """The path, with nothing there; writers may come in between."""
        for _ in range(1000):
            try:
                if self._path.is_dir() and not self._path.is_symlink():
                    shutil.rmtree(self._path)
                else:
                    self._path.unlink(missing_ok=True)
            except OSError:
                continue
            break
        return self._path


@contextmanager
def swapping(path: Path) -> Iterator[Swapper]:
    swapper = Swapper(path)

    def run() -> None:
        while True:
            try:
                swapper.run()
            except FileExistsError:
                continue  # a writer was faster
            except OSError:
                continue
            return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield swapper
    finally:
        swapper.end()
        thread.join()
