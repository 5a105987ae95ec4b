"""Reading from a mount that may hang, without hanging.

Who waits for a daemon that does not answer cannot be killed, and a process that has such a
thread does not end. So a child asks, which is left behind if it has to be.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from zarrfs.errors import MountError
from zarrfs.fuse.mount_point import says_dead

_MOST = 1 << 24


class NoAnswer(MountError):
    """A mount does not answer; ``state`` says in a word why."""

    def __init__(self, path: str, reason: str, state: Literal["dead", "hung", "private"]) -> None:
        super().__init__(f"{path} {reason}")
        self.state = state


Documents = list[Mapping[str, Any]]


def ask(mount_point: str, names: Sequence[str], seconds: float) -> Documents:
    """The JSON documents of these ``names`` in a mount's ``.zarrfs``.

    Raises `NoAnswer` after ``seconds``, or where the mount gives no answer.
    """
    (answer,) = ask_all([mount_point], names, seconds)
    if isinstance(answer, NoAnswer):
        raise answer
    return answer


def ask_all(
    mount_points: Sequence[str], names: Sequence[str], seconds: float
) -> list[Documents | NoAnswer]:
    """As `ask`, of several mounts at once."""
    until = time.monotonic() + seconds
    children = [(mount_point, *_start(mount_point, names)) for mount_point in mount_points]
    return [_hear(*child, until) for child in children]


def _start(mount_point: str, names: Sequence[str]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _answer(mount_point, names, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return pid, reading


def _hear(mount_point: str, pid: int, pipe: int, until: float) -> Documents | NoAnswer:
    try:
        said = _read(pipe, until)
    finally:
        os.close(pipe)
        os.kill(pid, signal.SIGKILL)
    if said is None:
        # The child is not waited for: it may not end before the mount does.
        return NoAnswer(mount_point, "does not answer: it hangs", "hung")
    os.waitpid(pid, 0)
    answer = json.loads(said or b'{"error": "does not answer", "state": "dead"}')
    if "error" in answer:
        return NoAnswer(mount_point, answer["error"], answer["state"])
    documents: Documents = answer["documents"]
    return documents


def _answer(mount_point: str, names: Sequence[str], pipe: int) -> None:
    """In the child."""
    # A program that waits until these descriptors close must not wait for this child.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    answer: dict[str, object]
    try:
        directory = Path(mount_point, ".zarrfs")
        answer = {"documents": [json.loads((directory / name).read_bytes()) for name in names]}
    except PermissionError:
        answer = {"error": "belongs to another user, and is closed to others", "state": "private"}
    except OSError as error:
        reason = f"does not answer: {error.strerror}"
        if says_dead(error):
            reason = "is dead: its daemon was killed; zarrfs umount clears the mount point"
        answer = {"error": reason, "state": "dead"}
    except ValueError:
        answer = {"error": "does not report its state", "state": "dead"}
    text = json.dumps(answer).encode()
    while text:
        text = text[os.write(pipe, text) :]


def _read(pipe: int, until: float) -> bytes | None:
    """Everything; None where it does not come in time."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    said = b""
    while poll.poll(max(until - time.monotonic(), 0) * 1000):
        part = os.read(pipe, 1 << 16)
        said += part
        if not part or len(said) > _MOST:
            return said
    return None
