"""Runs cases in a process of their own, and tells of all that is none of our errors."""

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol


class Cases(Protocol):
    def run(self, random: Random) -> str | None:
        """One case; what it was refused for, or None. Raises where something is wrong."""
        ...


class Target(NamedTuple):
    """make : the cases. share : of the time. at_once : cases in one process. room : bytes that
    they may take beside what they start with; seconds : that one may take.
    """

    make: Callable[[], Cases]
    share: float
    at_once: int
    room: int = 1 << 30
    seconds: float = 20.0


def _of(module: str, name: str, **options: Any) -> Callable[[], Cases]:
    """Imported where it runs: each process would import what only others need, too."""
    return lambda: getattr(import_module(f"tests.fuzz.{module}"), name)(**options)  # type: ignore[no-any-return]


TARGETS = {
    "streams": Target(_of("streams", "Streams"), 0.40, 200_000),
    "documents": Target(_of("documents", "Documents"), 0.28, 20_000),
    "isolated": Target(_of("streams", "Streams", isolated=True), 0.06, 20_000),
    "shards": Target(_of("stores", "Shards"), 0.08, 20_000),
    "texts": Target(_of("texts", "Texts"), 0.04, 50_000),
    "archives": Target(_of("stores", "Archives"), 0.04, 2_000),
    "replies": Target(_of("stores", "Replies"), 0.04, 2_000),
    "journals": Target(_of("files", "Journals"), 0.02, 20_000),
    "caches": Target(_of("files", "Caches"), 0.02, 5_000),
    "icechunk": Target(_of("files", "Repositories"), 0.06, 200),
    "parquet": Target(_of("files", "Parquet"), 0.06, 50),
    "hdf5": Target(_of("foreign", "hdf5"), 0.10, 500, room=4 << 30),
    "tiff": Target(_of("foreign", "tiff"), 0.06, 500, room=4 << 30),
    "grib": Target(_of("foreign", "grib"), 0.06, 500, room=4 << 30),
    "mounts": Target(_of("mounts", "Mounts"), 0.06, 4, seconds=60.0),
    "writes": Target(_of("mounts", "Writes"), 0.06, 4, seconds=60.0),
}
MAIN = ("-m", "tests.fuzz")
"""How a process of cases is started."""


class Failure(NamedTuple):
    target: str
    seed: int
    number: int
    said: str

    def __str__(self) -> str:
        again = f"--target {self.target} --seed {self.seed} --first {self.number} --cases 1"
        return f"python -m tests.fuzz {again}\n{self.said}"


def run_here(target: str, seed: int, numbers: range, place: Path) -> None:
    """Cases in this process; what comes of them is written below ``place``."""
    faulthandler.enable((place / "crash").open("wb"))
    wanted = TARGETS[target]
    cases = wanted.make()
    _limit(wanted.room)
    outcomes: Counter[str] = Counter()
    with (place / "failures").open("a") as failures, (place / "at").open("r+b", 0) as at:
        for number in numbers:
            os.pwrite(at.fileno(), number.to_bytes(8, "little"), 0)
            started = time.process_time()
            try:
                outcomes[cases.run(Random(f"{target}/{seed}/{number}")) or "served"] += 1
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # noqa: BLE001 - that is what is looked for
                _tell(failures, number, traceback.format_exc()[-3000:])
            if (took := time.process_time() - started) > wanted.seconds:
                _tell(failures, number, f"took {took:.1f} s of processor time")
    (place / "outcomes").write_text(json.dumps(outcomes))
    (place / "done").write_text("")
    os._exit(0)  # past threads of servers


def _tell(failures: Any, number: int, said: str) -> None:
    failures.write(json.dumps([number, said]) + "\n")
    failures.flush()


def _limit(room: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_apart(
    target: str, seed: int, numbers: range, place: Path
) -> tuple[int, Counter[str], list[Failure]]:
    """Cases in a new process: how many ran, what became of them, and what was wrong."""
    place.mkdir(parents=True, exist_ok=True)
    for name in ("failures", "crash", "outcomes", "done"):
        (place / name).unlink(missing_ok=True)
    (place / "at").write_bytes(numbers.start.to_bytes(8, "little"))
    command = [
        sys.executable, *MAIN, "--here", str(place), "--target", target,
        "--seed", str(seed), "--first", str(numbers.start), "--cases", str(len(numbers)),
    ]  # fmt: skip
    with (place / "stderr").open("wb") as stderr_file:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=stderr_file, start_new_session=True
        )
    failures = []
    said = _wait(process, place, TARGETS[target].seconds)
    at = int.from_bytes((place / "at").read_bytes(), "little")
    if said is not None:
        trace = (place / "crash").read_bytes() if (place / "crash").exists() else b""
        stderr = (place / "stderr").read_bytes()[-2000:]
        failures.append(
            Failure(target, seed, at, f"{said}\n{(trace + stderr).decode(errors='replace')}")
        )
    if (place / "failures").exists():
        for line in (place / "failures").read_text().splitlines():
            number, text = json.loads(line)
            failures.append(Failure(target, seed, number, text))
    outcomes: Counter[str] = Counter()
    if (place / "outcomes").exists():
        outcomes.update(json.loads((place / "outcomes").read_text()))
    ran = at - numbers.start + (1 if said is None else 0)
    return ran, outcomes, failures


def _wait(process: subprocess.Popen[bytes], place: Path, seconds: float) -> str | None:
    """Until it ends; why it did not end well. A case that never ends is noticed."""
    last, since = b"", time.monotonic()
    while True:
        try:
            status = process.wait(1)
        except subprocess.TimeoutExpired:
            at = (place / "at").read_bytes()
            if at != last:
                last, since = at, time.monotonic()
            elif time.monotonic() - since > 6 * seconds + 60:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return "hangs"
            continue
        if status or not (place / "done").exists():
            return f"ended with {status}"
        return None


def rounds(seconds: float, targets: Sequence[str]) -> Iterator[str]:
    """Targets, each for its share of the time."""
    spent = dict.fromkeys(targets, 0.0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        name = min(spent, key=lambda name: spent[name] / TARGETS[name].share)
        started = time.monotonic()
        yield name
        spent[name] += time.monotonic() - started
