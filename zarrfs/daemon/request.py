"""What the user asked to be mounted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zarrfs.daemon.options import MountOptions


@dataclass(frozen=True, slots=True)
class MountRequest:
    """One mount.

    source : path or URL, as it was given.
    mount_point : where, as it was given; the daemon gets it absolute and without links.
    storage_options : handed to fsspec; may hold secrets and is never shown.
    foreground : stay attached to the terminal, and log to it.
    """

    source: str
    mount_point: str
    options: MountOptions = field(default_factory=MountOptions)
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    foreground: bool = False
