"""The mounts of zarrfs on this machine, and whether their daemons run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from zarrfs.counted import printable
from zarrfs.daemon.inquiry import Documents, NoAnswer, ask_all
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, MountEntry, mounts

_ANSWER_S = 2.0

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
    state: State = "alive"
    pid = None
    if isinstance(answer, NoAnswer):
        state = answer.state
    else:
        pid = answer[0].get("pid")
    return Mounted(entry.path, entry.source, "rw" in entry.options, state, pid)
