"""How large and how often: the full run, the quick one, and the one of the tests."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Scale:
    """What one run measures with; where nothing is said, the full one.

    volume : shape of the uint16 arrays (a)-(e) and (g); a read of 4 KiB is whole rows of it.
    image : shape of the float32 array (f).
    rounds : how often each contender is measured.
    most_rounds : the same while a comparison has taken less than ``brief`` seconds, for what is
        short varies most.
    orientation_rounds : the same for those who are shown for orientation only.
    orientation_seconds : after so much time such a one is not measured again.
    thorough : whether rows other than the first take all of their arrays, or only the last.
    patience : seconds after which a comparison ends with fewer rounds, as the table then says.
    reads : random reads of 4 KiB in one figure.
    cold_reads : the same where nothing is decoded yet.
    writes : random writes of 4 KiB before one fsync.
    seconds : how long reads go on where their rate is the figure.
    region : bytes of a file that random reads with a warm cache go to.
    chunk_files : chunk files read in one figure.
    """

    name: str
    volume: tuple[int, int, int] = (1024, 1024, 512)
    image: tuple[int, int] = (16384, 16384)
    rounds: int = 5
    most_rounds: int = 15
    brief: float = 15
    orientation_rounds: int = 3
    orientation_seconds: float = 15
    thorough: bool = True
    patience: float = 150
    reads: int = 16384
    cold_reads: int = 1024
    writes: int = 512
    seconds: float = 5
    region: int = 256 * MIB
    chunk_files: int = 48


FULL = Scale("full")

# Slabs of the same height, fewer and narrower.
QUICK = Scale(
    name="quick",
    volume=(320, 512, 512),
    image=(2048, 16384),
    rounds=3,
    most_rounds=3,
    orientation_rounds=0,
    orientation_seconds=0,
    thorough=False,
    patience=6,
    reads=8192,
    cold_reads=512,
    writes=128,
    seconds=1.5,
    region=64 * MIB,
    chunk_files=16,
)

# Runs every line once and measures nothing.
TINY = Scale(
    name="tiny",
    volume=(256, 128, 128),
    image=(64, 4096),
    rounds=1,
    most_rounds=1,
    orientation_rounds=1,
    orientation_seconds=0,
    thorough=True,
    patience=60,
    reads=16,
    cold_reads=4,
    writes=4,
    seconds=0.05,
    region=1 * MIB,
    chunk_files=2,
)

SCALES = {scale.name: scale for scale in (FULL, QUICK, TINY)}
