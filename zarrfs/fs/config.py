"""Settings of the file system."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from zarrfs.array.groups_above import GroupsAbove, NamesBeside, nothing_above
from zarrfs.format.metadata.kept import UseConsolidated


class FileSystemConfig(NamedTuple):
    """The settings of a mount.

    byteorder : of the elements in every flat view.
    order : ``C`` (last axis fastest) or ``F`` (first axis fastest) for whole arrays.
    memory : bytes for decoded chunks, shard indexes and what is being decoded.
    loaders : threads that fetch and decode chunks; None: one more than there are
        processors for a local store, many for a remote one.
    fill_missing : whether a chunk that is not stored reads as the fill value;
        else reading it is an error.
    recheck : seconds after which an open asks the store again whether its data
        have changed; infinity never does; None: 1 for a local store, 30 for a remote one.
    path : of the node below the source that is the mount's root; empty: the source itself.
    recheck_metadata : seconds after which a look-up reads the metadata of a node again;
        infinity never does.
    zarr_format : the only version of Zarr to look for; None: the newest there is.
    consolidated : when consolidated metadata are used; see `Hierarchy`. ``auto`` means ``never``
        where data files can be written to, because they may be out of date.
    writable : whether data files can be written to.
    store_fill : whether chunks of nothing but fill values are stored when written.
    resize : whether arrays can be resized along their first axis, by appending to
        ``array.bin`` and ``array.npy`` and truncating them.
    allow_remove : whether files of chunks and shards can be removed, which makes their elements
        fill value.
    region : the box of the array that its files show, as `parse_region` takes it; None: all of
        it. Only where the source is one array.
    names : whether the files of an array are called ``array.bin`` and so on, or after the array.
    hide : what is left out of listings of arrays: ``chunks``, ``shards``, ``npy``.
    flush_delay : seconds after which a change is stored even if nobody asks.
    journal : directory for changes that cannot be stored when the mount ends; None: they
        are lost then.
    spill : directory for decoded chunks of scans that need more of them than ``memory``
        holds; None: they are decoded again.
    views : formats in which arrays are shown beside ``array.bin``, by their names in
        `zarrfs.views.headers.registry`, or ``default`` or ``all`` in place of names.
    attribute_seconds : how long the kernel may keep names and attributes.
    groups_above : the groups that hold the source, and the arrays of the given names beside it.
        Blocks, and raises nothing.
    """

    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"
    memory: int = 1 << 30
    loaders: int | None = None
    fill_missing: bool = True
    recheck: float | None = None
    path: str = ""
    recheck_metadata: float = math.inf
    zarr_format: Literal[1, 2, 3] | None = None
    consolidated: UseConsolidated = "auto"
    writable: bool = False
    store_fill: bool = False
    resize: bool = False
    allow_remove: bool = False
    region: str | None = None
    names: Literal["array", "node"] = "array"
    hide: frozenset[str] = frozenset()
    flush_delay: float = 5.0
    journal: str | None = None
    spill: str | None = None
    views: tuple[str, ...] = ("npy",)
    attribute_seconds: float = 60.0
    groups_above: Callable[[NamesBeside], GroupsAbove] = nothing_above
