"""What every row works with: arrays, mounts, processes, and what they leave behind."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import mounts
from benchmarks.arrays import Arrays
from benchmarks.library_process import run_task
from benchmarks.measuring import page_cache
from benchmarks.measuring.measure import Comparison, Limit
from benchmarks.measuring.native import program
from benchmarks.scale import Scale

PAGE = 4096
Comparisons = Generator[Comparison, None, None]


@dataclass(slots=True)
class Bench:
    """One run.

    kinds : the arrays that are wanted where a row has several.
    peaks : memory of every zarrfs daemon so far.
    """

    scale: Scale
    arrays: Arrays
    directory: Path
    kinds: Sequence[str]
    row: str = ""
    peaks: list[mounts.Peak] = field(default_factory=list)
    _mounts: int = 0

    def chosen(self, *kinds: str) -> list[str]:
        """Those of a row's arrays that are wanted."""
        wanted = [kind for kind in kinds if kind in self.kinds]
        return wanted if self.scale.thorough else wanted[-1:]

    def zarrfs(self, source: Path, *options: str) -> AbstractContextManager[mounts.Mounted]:
        """A fresh mount: nothing is decoded yet."""
        return mounts.zarrfs(source, self._point(), self.row, self.peaks, options)

    def memfs(self, size: int, *, direct: bool = False) -> AbstractContextManager[mounts.Mounted]:
        return mounts.memfs(self._program("memfs"), self._point(), size, direct=direct)

    def library(
        self, task: str, cold: Path | None = None, /, **arguments: Any
    ) -> Callable[[], float]:
        """A measurement of a task of `benchmarks.libraries`, in a process of its own.

        cold : the array that must not be in the page cache.
        """

        def measure() -> float:
            return run_task(
                task, lambda: None if cold is None else page_cache.drop_all(cold), **arguments
            ).seconds

        return measure

    def access(
        self, mode: str, path: Path, offsets: Path, size: int = PAGE, *more: object
    ) -> float:
        """Seconds for each access of `access.c`."""
        return access(self._program("access"), mode, path, offsets, size, *more)

    def offsets(self, name: str, places: NDArray[np.int64]) -> Path:
        """A file of byte offsets for `access.c` and for the libraries."""
        path = self.directory / f"{name}.offsets"
        places.astype(np.int64).tofile(path)
        return path

    def _program(self, name: str) -> Path:
        return program(name, self.arrays.directory)

    def _point(self) -> Path:
        self._mounts += 1
        return self.directory / f"mount{self._mounts}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    what, against : as the table says it.
    comparisons : what is measured for it.
    """

    name: str
    what: str
    against: str
    limit: Limit
    comparisons: Callable[[Bench], Comparisons]


def dd(source: Path | str, target: Path | str = "/dev/null", *words: str) -> float:
    """Seconds that ``dd bs=1M`` takes."""
    begun = time.perf_counter()
    subprocess.run(
        ["dd", f"if={source}", f"of={target}", "bs=1M", "status=none", *words], check=True
    )
    return time.perf_counter() - begun


def access(program: Path, mode: str, path: Path, offsets: Path, *more: object) -> float:
    """Seconds for each access of ``program``, which is `access.c`."""
    words = [program, mode, path, offsets, *more]
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True
    )
    count, seconds = done.stdout.split()
    return float(seconds) / int(count)


def random_pages(size: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Offsets of whole pages below ``size``, none twice while there are others."""
    rng = np.random.default_rng(seed)
    pages = size // PAGE
    rounds = [rng.permutation(pages) for _ in range(-(-count // pages))]
    return np.concatenate(rounds)[:count] * PAGE


@contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """A directory for mount points and small files, gone afterwards."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=parent) as name:
        yield Path(name)
