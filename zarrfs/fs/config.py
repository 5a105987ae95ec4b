"""Settings of the file system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FileSystemConfig:
    """What a mount is told.

    byteorder : of the elements in every flat view.
    order : ``C`` (last axis fastest) or ``F`` (first axis fastest) for whole arrays.
    memory : bytes for decoded chunks, shard indexes and what is being decoded.
    loaders : threads that fetch and decode chunks; None: one more than there are
        processors for a local store, many for a remote one.
    fill_missing : whether a chunk that is not stored reads as the fill value;
        else reading it is an error.
    recheck : seconds after which an open asks the store again whether its data
        have changed; infinity never does; None: 1 for a local store, 30 for a remote one.
    zarr_format : the only version of Zarr to look for; None: the newest there is.
    attribute_seconds : how long the kernel may keep names and attributes.
    """

    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"
    memory: int = 1 << 30
    loaders: int | None = None
    fill_missing: bool = True
    recheck: float | None = None
    zarr_format: Literal[1, 2, 3] | None = None
    attribute_seconds: float = 60.0
