"""What the user asked to be mounted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from zarrfs.daemon.options.options import MountOptions


class MountRequest(NamedTuple):
    """One mount.

    source : path or URL, as it was given.
    mount_point : where, as it was given; the daemon gets it absolute and without links.
    storage_options : handed to fsspec; may hold secrets and is never shown.
    foreground : stay attached to the terminal, and log to it.
    """

    source: str
    mount_point: str
    options: MountOptions = MountOptions()
    storage_options: Mapping[str, object] = MappingProxyType({})
    foreground: bool = False

    def __repr__(self) -> str:
        return f"MountRequest({self.source!r}, {self.mount_point!r}, …)"
