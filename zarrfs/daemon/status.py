"""Asks from outside which mounts of zarrfs there are, and how they are doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from zarrfs.counted import printable
from zarrfs.daemon.inquiry import Documents, NoAnswer, ask, ask_all
from zarrfs.fuse.mount_point import resolve_mount_point
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, MountEntry, mounts, own_mount

_ANSWER_S = 2.0
_ASKED = ("config.json", "stats.json")
# Names of rates, and the counts that they are of.
_RATES = (
    ("read", "reads", "bytes"),
    ("written", "writes", "bytes"),
    ("fetched", "store", "read_bytes"),
    ("stored", "store", "written_bytes"),
)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a mount at one moment.

    stats, config : of its ``.zarrfs``.
    """

    mountpoint: str
    stats: Mapping[str, Any]
    config: Mapping[str, Any]

    @classmethod
    def of(cls, mount_point: str) -> Status:
        """Raises `MountError` in bounded time, whether nothing is there, it is dead or hangs."""
        path = resolve_mount_point(mount_point)
        own_mount(path)
        config, stats = ask(path, _ASKED, _ANSWER_S)
        return cls(path, stats, config)

    @property
    def writable(self) -> bool:
        return bool(self.config["options"]["rw"])

    def as_document(self) -> dict[str, Any]:
        return {"mountpoint": self.mountpoint, "config": self.config, "stats": self.stats}

    def rates(self, before: Status | None) -> dict[str, float]:
        """Bytes per second since ``before``, or since the mount began; empty for no time."""
        then = None if before is None else before.stats
        seconds = self.stats["uptime_seconds"] - (then["uptime_seconds"] if then else 0.0)
        return {
            rate: (self.stats[group][name] - (then[group][name] if then else 0)) / seconds
            for rate, group, name in _RATES
            if seconds > 0
        }


def metrics_of_all() -> tuple[str, list[str]]:
    """The metrics of all mounts that this process can see, and why others give none."""
    from zarrfs.fs.status import to_metrics  # noqa: PLC0415 - it needs trio, all else here does not

    paths = [entry.path for entry in mounts(FILE_SYSTEM_TYPE)]
    answers = ask_all(paths, _ASKED, _ANSWER_S)
    given = [(answer[0], answer[1]) for answer in answers if not isinstance(answer, NoAnswer)]
    silent = [str(answer) for answer in answers if isinstance(answer, NoAnswer)]
    return to_metrics(given).decode(), silent


State = Literal["alive", "dead", "hung", "private"]


@dataclass(frozen=True, slots=True)
class Mounted:
    """One mount.

    pid : of its daemon; None if the daemon does not report it.
    """

    mountpoint: str
    source: str
    writable: bool
    state: State
    pid: int | None

    def as_document(self) -> dict[str, object]:
        return asdict(self)

    def as_row(self) -> tuple[str, ...]:
        """A row of the table of mounts, of texts that are safe to send to a terminal."""
        mode = "rw" if self.writable else "ro"
        texts = (self.mountpoint, self.source, mode, self.state, str(self.pid or "-"))
        return tuple(map(printable, texts))


def list_mounts() -> Sequence[Mounted]:
    """All zarrfs mounts that this process can see, in the order in which they came."""
    entries = mounts(FILE_SYSTEM_TYPE)
    answers = ask_all([entry.path for entry in entries], ["config.json"], _ANSWER_S)
    return [_mounted(entry, answer) for entry, answer in zip(entries, answers, strict=True)]


def _mounted(entry: MountEntry, answer: Documents | NoAnswer) -> Mounted:
    said: tuple[State, int | None] = (
        (answer.state, None) if isinstance(answer, NoAnswer) else ("alive", answer[0].get("pid"))
    )
    return Mounted(entry.path, entry.source, "rw" in entry.options, *said)
