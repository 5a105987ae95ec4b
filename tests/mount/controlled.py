"""Daemons whose store waits and fails when a test says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Daemon
from tests.waiting import wait_until

SCRIPT = Path(__file__).parent / "controlled_zarrfs.py"
SECONDS = 20.0


@dataclass(frozen=True)
class Controlled:
    """A mounted daemon and the directory that `controlled_zarrfs` looks at."""

    daemon: Daemon
    directory: Path

    @classmethod
    def mount(
        cls, mount_daemon: Callable[..., Daemon], source: Path, directory: Path, *options: str
    ) -> Controlled:
        """Mounts ``source``, for writing; nothing is stored unless somebody asks.

        Worker processes would store beside the controlled store, so there are none.
        """
        directory.mkdir(exist_ok=True)
        daemon = mount_daemon(
            source,
            "rw,flush_delay=3600,workers=0",
            *options,
            quiet=False,
            command=(sys.executable, SCRIPT, directory),
        )
        return cls(daemon, directory)

    def hold(self) -> None:
        """Have all changes of the store wait from now on."""
        (self.directory / "hold").touch()

    def wait_until_held(self) -> None:
        """Returns when a change of the store waits."""
        wait_until((self.directory / "waiting").exists)

    def go_on(self) -> None:
        (self.directory / "hold").unlink()

    def fill(self) -> None:
        """Have all changes of the store fail: there is no room."""
        (self.directory / "full").touch()

    def empty(self) -> None:
        (self.directory / "full").unlink()

    def hold_reads(self, prefix: str) -> None:
        """Have reads of keys that begin so wait from now on."""
        (self.directory / "reads").write_text(prefix)

    def let_reads(self) -> None:
        (self.directory / "reads").unlink()

    @property
    def held_reads(self) -> int:
        """How many reads have waited or wait."""
        path = self.directory / "read"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def changes(self) -> int:
        """How many changes of the store have begun."""
        path = self.directory / "changes"
        return len(path.read_text()) if path.exists() else 0
