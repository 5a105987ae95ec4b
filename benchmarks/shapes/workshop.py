"""Turns of the contenders: zarrfs through a mount, a library in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import mounts
from benchmarks.library_process import run_task
from benchmarks.measuring import fresh_memory
from benchmarks.measuring.native import program
from benchmarks.measuring.processor_time import processor_seconds
from benchmarks.shapes.subject import Subject

# Bytes that are available when a turn begins: more than zarrfs uses beside the kernel's page cache.
_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Turn:
    """One contender, once.

    seconds : until the work was done.
    processor : user and system seconds of the daemon with its workers, or of the library; the
        programs that read a mount are not in it.
    fetched, decoded : bytes that a daemon took from its store and decoded; 0 of a library.
    """

    seconds: float
    processor: float
    fetched: int = 0
    decoded: int = 0


@dataclass(slots=True)
class Workshop:
    """Where mounts and small files of a run are.

    peaks : memory of every daemon so far.
    """

    directory: Path
    row: str = ""
    peaks: list[mounts.Peak] = field(default_factory=list)
    _mounts: int = 0

    @contextmanager
    def mount(self, source: Path, *options: str) -> Iterator[mounts.Mounted]:
        """A fresh mount: nothing is decoded yet."""
        options = (f"journal={self.directory / 'journal'}", *options)
        with mounts.zarrfs(source, self._point(), self.row, self.peaks, options) as mounted:
            yield mounted

    def through_mount(
        self,
        source: Path,
        before: Callable[[], None],
        work: Callable[[mounts.Mounted], float],
        *options: str,
    ) -> Turn:
        """Mounts ``source``, calls ``before``, and then ``work``, which returns its seconds."""
        with self.mount(source, *options) as mounted:
            before()
            fresh_memory.make_available(_MEMORY)
            begun = processor_seconds(mounted.pid)
            seconds = work(mounted)
            processor = processor_seconds(mounted.pid) - begun
            stats = json.loads((mounted.path / ".zarrfs/stats.json").read_bytes())
        fetched, decoded = stats["store"]["read_bytes"], stats["cache"]["decoded_bytes"]
        return Turn(seconds, processor, fetched, decoded)

    def in_memory(self, size: int, work: Callable[[Path], float]) -> Turn:
        """Calls ``work`` with the file of `memfs.c`, of ``size`` bytes; it returns its seconds.

        The processor time is also that of the programs that ``work`` runs.

        Raises RuntimeError where `memfs.c` cannot be compiled.
        """
        try:
            memfs = program("memfs", self.directory)
        except (OSError, subprocess.CalledProcessError) as error:
            raise RuntimeError(str(error)) from error
        with mounts.memfs(memfs, self._point(), size) as mounted:
            fresh_memory.make_available(_MEMORY)
            begun = processor_seconds(mounted.pid) + _ended_programs()
            seconds = work(mounted.flat)
            return Turn(seconds, processor_seconds(mounted.pid) + _ended_programs() - begun)

    def library(self, task: str, before: Callable[[], None], **arguments: Any) -> Turn:
        """A task of `benchmarks.libraries`."""

        def prepare() -> None:
            before()
            fresh_memory.make_available(_MEMORY)

        return Turn(*run_task(task, prepare, **arguments))

    @property
    def access(self) -> Path:
        """The program `access.c`."""
        return program("access", self.directory)

    def _point(self) -> Path:
        self._mounts += 1
        return self.directory / f"mount{self._mounts}"


def _ended_programs() -> float:
    """Processor seconds of programs that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Contender = Callable[[int], Turn]
"""Takes one turn; is told its number."""


def verify_reading(workshop: Workshop, subject: Subject, *options: str) -> None:
    """Raises `ValueError` unless ``array.bin`` holds the elements of the subject, every byte."""
    with (
        workshop.mount(subject.array, *options) as mounted,
        mounted.flat.open("rb", buffering=0) as flat,
        subject.plain.open("rb", buffering=0) as plain,
    ):
        place = 0
        for expected in iter(partial(plain.read, 1 << 20), b""):
            if flat.read(len(expected)) != expected:
                raise ValueError(f"{subject.geometry}: other bytes after {place}")
            place += len(expected)
        if flat.read(1):
            raise ValueError(f"{subject.geometry}: more than {place} bytes")
