"""A request to mount a source."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from zarrfs.daemon.options.options import MountOptions


class MountRequest(NamedTuple):
    """One mount.

    source : path or URL, as it was given.
    more : further sources; then each is a directory of the mount.
    mount_point : where, as it was given; the daemon gets it absolute and without links. None:
        at a directory that zarrfs makes, and removes when the mount ends.
    storage_options : handed to fsspec; may hold secrets and is never shown.
    foreground : stay attached to the terminal, and log to it.
    made : zarrfs made the mount point.
    """

    source: str
    mount_point: str | None
    options: MountOptions = MountOptions()
    storage_options: Mapping[str, object] = MappingProxyType({})
    foreground: bool = False
    made: bool = False
    more: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, *self.more)

    @property
    def place(self) -> str:
        """The mount point, which is known when this is asked."""
        assert self.mount_point is not None
        return self.mount_point

    def __repr__(self) -> str:
        return f"MountRequest({self.source!r}, {self.mount_point!r}, …)"
