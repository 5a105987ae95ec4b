"""What is measured of each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import access, dd
from benchmarks.mounts import Mounted
from benchmarks.shapes.places import planes, random_places
from benchmarks.shapes.subject import Subject
from benchmarks.shapes.workshop import Contender, Turn, Workshop

# What zarrfs may take unless it is told otherwise, for the libraries too.
_CACHE = 1 << 30
_READS = 1024
_LEAST_MEMORY = 16 << 20

SUBJECT, PEER, ORIENTATION = "zarrfs", "TensorStore", "zarrs"
# A file system in C that has the bytes in memory: what a mount takes besides decoding or encoding.
PASSAGE = "FUSE"


@dataclass(frozen=True, slots=True)
class Task:
    """A row for one shape.

    contenders : the turn of each; others than zarrfs and TensorStore are for orientation.
    amount, unit : what a turn's seconds are for, as of `benchmarks.measuring.measure.Comparison`.
    check : after all turns; raises `ValueError` where what was written is not there.
    """

    contenders: Mapping[str, Contender]
    amount: float
    unit: str = "MB/s"
    check: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One row of the distribution.

    must : the ratio to TensorStore that a statistic must reach over 40 shapes.
    prepare : what is measured of a shape; None where the shape has no such thing.
    """

    name: str
    what: str
    must: Mapping[str, float]
    prepare: Callable[[Workshop, Subject], Task | None]


def _scan(mounted: Mounted) -> float:
    return dd(mounted.flat)


def _read(
    workshop: Workshop, subject: Subject, *, cold: bool, options: tuple[str, ...] = ()
) -> Task:
    before = subject.cool if cold else subject.warm
    path = str(subject.array)

    def zarrfs(_: int) -> Turn:
        return workshop.through_mount(subject.array, before, _scan, *options)

    def tensorstore(_: int) -> Turn:
        return workshop.library("tensorstore.read_all", before, path=path)

    def zarrs(_: int) -> Turn:
        return workshop.library("zarr_python.read_all", before, path=path, rust=True)

    contenders: dict[str, Contender] = {SUBJECT: zarrfs, PEER: tensorstore}
    if not options:
        contenders[PASSAGE] = lambda _: workshop.in_memory(subject.geometry.size, dd)
        if not cold:
            contenders[ORIENTATION] = zarrs
    return Task(contenders, subject.geometry.size)


def _small_memory(workshop: Workshop, subject: Subject) -> Task:
    memory = max(subject.geometry.size // 4, _LEAST_MEMORY)
    return _read(workshop, subject, cold=False, options=(f"memory={memory}",))


def _write(workshop: Workshop, subject: Subject) -> Task:
    ours, theirs = subject.copy("written-zarrfs"), subject.copy("written-tensorstore")
    # Something else each time: what is stored already might be found out.
    sources = (subject.other, subject.plain)
    last = subject.plain

    def nothing() -> None:
        pass

    def overwrite(flat: Path) -> float:
        return dd(last, flat, "conv=notrunc,fsync")

    def zarrfs(number: int) -> Turn:
        nonlocal last
        last = sources[number % 2]
        return workshop.through_mount(ours, nothing, lambda mounted: overwrite(mounted.flat), "rw")

    def tensorstore(number: int) -> Turn:
        data = str(sources[number % 2])
        return workshop.library("tensorstore.write_all", nothing, path=str(theirs), data=data)

    def check() -> None:
        workshop.library("tensorstore.expect", nothing, path=str(ours), data=str(last))

    size = subject.geometry.size
    contenders = {
        SUBJECT: zarrfs,
        PEER: tensorstore,
        PASSAGE: lambda _: workshop.in_memory(size, overwrite),
    }
    return Task(contenders, size, check=check)


def _random(workshop: Workshop, subject: Subject) -> Task:
    places, size = random_places(subject.geometry, _READS)
    offsets = workshop.directory / "offsets"
    places.tofile(offsets)

    def reads(mounted: Mounted) -> float:
        return access(workshop.access, "pread", mounted.flat, offsets, size) * _READS

    def zarrfs(_: int) -> Turn:
        return workshop.through_mount(subject.array, subject.cool, reads)

    def tensorstore(_: int) -> Turn:
        return workshop.library(
            "tensorstore.read_at",
            subject.cool,
            path=str(subject.array),
            offsets=str(offsets),
            size=size,
            cache=_CACHE,
        )

    return Task({SUBJECT: zarrfs, PEER: tensorstore}, _READS, "reads/s")


def _plane(workshop: Workshop, subject: Subject) -> Task | None:
    geometry = subject.geometry
    axis = geometry.plane_axis
    if axis is None:
        return None
    positions, amount = planes(geometry, axis)

    def reads(mounted: Mounted) -> float:
        return workshop.library(
            "mapped.read_planes",
            lambda: None,
            path=str(mounted.flat),
            dtype=geometry.dtype.str,
            shape=geometry.shape,
            axis=axis,
            positions=positions,
        ).seconds

    def zarrfs(_: int) -> Turn:
        return workshop.through_mount(subject.array, subject.warm, reads)

    def tensorstore(_: int) -> Turn:
        return workshop.library(
            "tensorstore.read_planes",
            subject.warm,
            path=str(subject.array),
            axis=axis,
            positions=positions,
            cache=_CACHE,
        )

    return Task({SUBJECT: zarrfs, PEER: tensorstore}, amount)


ROWS: Mapping[str, ShapeRow] = {
    row.name: row
    for row in (
        ShapeRow(
            "read",
            "sequential read, stored bytes in the page cache",
            {},
            lambda workshop, subject: _read(workshop, subject, cold=False),
        ),
        ShapeRow(
            "cold",
            "sequential read, cold",
            {"least": 0.45, "10th percentile": 0.6, "median": 0.9},
            lambda workshop, subject: _read(workshop, subject, cold=True),
        ),
        ShapeRow(
            "write",
            "sequential overwrite, then fsync",
            {"least": 0.35, "10th percentile": 0.5, "median": 0.85},
            _write,
        ),
        ShapeRow(
            "random",
            "random reads of 4 KiB, cold",
            {"10th percentile": 0.6, "median": 1.0},
            _random,
        ),
        ShapeRow("plane", "planes across an axis, by mmap", {}, _plane),
        ShapeRow(
            "small-memory",
            "sequential read, the array four times the memory",
            {"least": 0.3},
            _small_memory,
        ),
    )
}
