"""How a mount is doing, asked from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrfs.daemon.inquiry import NoAnswer, ask, ask_all
from zarrfs.errors import MountError
from zarrfs.fs.status import to_metrics
from zarrfs.fuse.mount_point import resolve_mount_point
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, mounts, topmost

_ANSWER_S = 2.0
_ASKED = ("config.json", "stats.json")


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
        entry = topmost(path)
        if entry is None:
            raise MountError(f"{path} is not mounted")
        if entry.type != FILE_SYSTEM_TYPE:
            raise MountError(f"{path} is a mount of {entry.type}, not of zarrfs")
        config, stats = ask(path, _ASKED, _ANSWER_S)
        return cls(path, stats, config)

    @property
    def writable(self) -> bool:
        return bool(self.config["options"]["rw"])

    def as_document(self) -> dict[str, Any]:
        return {"mountpoint": self.mountpoint, "config": self.config, "stats": self.stats}

    def rates(self, before: Status) -> dict[str, float]:
        """Per second since ``before``: bytes read, written and fetched, requests, hits."""
        seconds = self.stats["uptime_seconds"] - before.stats["uptime_seconds"]
        if seconds <= 0:
            return {}
        return {
            "read": self._grown(before, "reads", "bytes") / seconds,
            "written": self._grown(before, "writes", "bytes") / seconds,
            "requests": (
                self._grown(before, "reads", "count") + self._grown(before, "writes", "count")
            )
            / seconds,
            "fetched": self._grown(before, "store", "read_bytes") / seconds,
            "stored": self._grown(before, "store", "written_bytes") / seconds,
        }

    def _grown(self, before: Status, group: str, name: str) -> float:
        return float(self.stats[group][name] - before.stats[group][name])


def metrics_of_all() -> tuple[str, list[str]]:
    """The metrics of all mounts that this process can see, and why others give none."""
    paths = [entry.path for entry in mounts(FILE_SYSTEM_TYPE)]
    answers = ask_all(paths, _ASKED, _ANSWER_S)
    given = [(answer[0], answer[1]) for answer in answers if not isinstance(answer, NoAnswer)]
    silent = [str(answer) for answer in answers if isinstance(answer, NoAnswer)]
    return to_metrics(given).decode(), silent
