"""The mount options, in one table: types, defaults, explanations, and how a value is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from zarrfs.daemon.options import option_values as values
from zarrfs.views.headers.registry import FORMATS, GROUP_OPTIONS

HIDEABLE = ("chunks", "shards", "npy")
"""The names that ``hide`` takes."""


class Option(NamedTuple):
    """One row of the table.

    name : as it is written, and the field of `MountOptions`.
    metavar : what its value looks like; empty for a switch, which needs none.
    default : in words.
    help : one or two sentences.
    read : from the text of a value to the value; raises `ValueError`.
    """

    name: str
    metavar: str
    default: str
    help: str
    read: Callable[[str], Any]


_METAVARS: Mapping[Callable[[str], Any], str] = MappingProxyType(
    {
        values.count: "N",
        values.count_or_none: "N",
        values.flag: "true|false",
        values.memory: "SIZE",
        values.node_path: "PATH",
        values.numeric_id: "N",
        values.path: "DIR",
        values.path_or_none: "DIR|none",
        values.recheck: "SECONDS|never|always",
        values.seconds: "SECONDS",
        values.text: "NAME",
        values.region: "START:STOP,…",
        values.umask: "OCTAL",
        values.views: "all|none|NAME,…",
        values.zarr_format: "1|2|3",
    }
)


def _option(
    read: Callable[[str], Any],
    explanation: str,
    value: Any = None,
    *,
    default: str | None = None,
    metavar: str | None = None,
) -> Any:
    """A field with the default ``value``, and its `Option` without the name.

    default, metavar : None: as ``value`` and ``read`` say.
    """
    if default is None:
        default = "none" if value is None else str(value).lower().removesuffix(".0")
    row = (_METAVARS[read] if metavar is None else metavar, default, explanation, read)
    return field(default=value, metadata={"row": row})


def _switch(explanation: str) -> Any:
    return _option(values.flag, explanation, False, default="off", metavar="")


def _choice(metavar: str, explanation: str, value: str = "", default: str | None = None) -> Any:
    """An option that is one of the words in ``metavar``, the first one if ``value`` is empty."""
    words = metavar.split("|")
    value = value or words[0]
    return _option(
        values.one_of(*words), explanation, value, default=default or value, metavar=metavar
    )


@dataclass(frozen=True, slots=True)
class MountOptions:
    """The options of one mount.

    None: zarrfs chooses when it mounts; for ``spill``: no directory.
    """

    rw: bool = _switch("Let programs change the data of arrays; ro, the default, cancels it.")
    flush_delay: float = _option(
        values.seconds,
        "Store a change after this time, if no fsync or close stores it before.",
        5.0,
    )
    journal: str | None = _option(
        values.path,
        "Directory for changes that cannot be stored when the mount ends; the next mount with rw "
        "stores them.",
        default="in the user's state directory",
    )
    overlay: str | None = _option(
        values.path,
        "Keep changes in this directory and leave the source as it is; zarrfs diff lists them, "
        "zarrfs commit stores them in the source.",
    )
    store_fill: bool = _switch("Also store chunks that hold only the fill value.")
    resize: bool = _switch(
        "With rw: a new size of array.bin or array.npy resizes the array along its first axis."
    )
    allow_remove: bool = _switch(
        "With rw: removing a file of a chunk or shard sets its elements to the fill value."
    )
    xattr: bool = _switch("Extended attributes also with rw, where they make small writes slower.")
    byteorder: Literal["little", "big"] = _choice(
        "little|big",
        "Byte order of the elements in array.bin, array.npy and chunk files; in structs, of every"
        " field.",
    )
    order: Literal["C", "F"] = _choice(
        "C|F",
        "Order of the elements in array.bin and array.npy: C (last axis fastest) or F (first axis"
        " fastest: MATLAB, Fortran, Julia).",
    )
    path: str = _option(
        values.node_path,
        "Show only the group or array at this path of the source.",
        "",
        default="all of the source",
    )
    region: str | None = _option(
        values.region,
        "Show only this box of the array that is mounted: START:STOP, or one INDEX, for each axis.",
        default="the whole array",
    )
    names: Literal["array", "node"] = _choice(
        "array|node",
        "Names of the files of an array: array.bin, array.tif and so on, or with node its own: "
        "raw.bin, raw.tif of an array raw. Those of groups stay group.h5, image.ome.tif.",
    )
    hide: tuple[str, ...] = _option(
        values.some_of(*HIDEABLE),
        "Names to leave out of listings: chunks, shards, npy (array.npy). cp -r, rsync and find "
        "then skip them. Programs can still open them.",
        (),
        default="nothing",
        metavar="NAME,…",
    )
    views: tuple[str, ...] = _option(
        values.views,
        "Formats in which arrays appear beside array.bin, as array.NAME, if the format can express "
        "the array: " + ", ".join(FORMATS) + ", default, and those of other packages. Files of "
        "groups: h5 also shows group.h5; " + ", ".join(GROUP_OPTIONS) + ".",
        ("default",),
        default="npy, nhdr, bin.hdr, h5; tif and nii of images, cog.tif of maps, image.ome.tif and "
        "image.tif of pyramids",
    )
    fill_missing: bool = _option(
        values.flag,
        "true: a chunk that is not stored reads as the fill value; false: reading it is an error.",
        True,
    )
    zarr_format: Literal[1, 2, 3] | None = _option(
        values.zarr_format, "Open only this version of Zarr.", default="the newest in the source"
    )
    consolidated: Literal["auto", "never", "only"] = _choice(
        "auto|never|only",
        "Whether consolidated metadata decide what is below a group that has them: auto; never: "
        "each array and group is read from its own documents; only: nothing else is read.",
        default="auto, which is never with rw",
    )
    assume_metadata: str | None = _option(
        values.path,
        "Use the zarr.json or .zarray in FILE in place of that of the source.",
        default="the source's own",
        metavar="FILE",
    )
    branch: str | None = _option(
        values.text,
        "Of an Icechunk repository, show the snapshot that is the tip of this branch at the mount.",
        default="main",
    )
    tag: str | None = _option(values.text, "Of an Icechunk repository, show this tag.")
    snapshot: str | None = _option(
        values.text, "Of an Icechunk repository, show the snapshot with this id.", metavar="ID"
    )
    memory: int | None = _option(
        values.memory,
        "Memory budget for decoded chunks and changes, with a unit K, M or G; at least 16M. Scans"
        " in C order are fast if one row of chunks fits.",
        default="a quarter of the RAM, at most 1G",
    )
    spill: str | None = _option(
        values.path_or_none,
        "Directory for unnamed files in place of memory: for scans that need more decoded chunks "
        "than memory holds, and for writes in order to such rows of chunks; at most two rows of "
        "chunks each.",
        "/var/tmp",
    )
    recheck: float | None = _option(
        values.recheck,
        "Age after which an open asks the store again whether data has changed.",
        default="1, remote 30",
    )
    recheck_metadata: float = _option(
        values.recheck,
        "Age after which a look-up reads the metadata of an array or group again. If shape or "
        "type have changed, programs must open its files again. A mount with resize reads those of "
        "arrays again only at kill -HUP.",
        math.inf,
        default="never",
    )
    immutable: bool = _switch("The source never changes, so zarrfs never checks it again.")
    follow_symlinks: bool = _switch("Follow symbolic links that lead out of a local source.")
    allow_other: bool = _switch("Let other users use the mount, according to its permissions.")
    allow_root: bool = _switch("Let root use the mount of another user.")
    uid: int | None = _option(
        values.numeric_id, "Owner of all files, as a number.", default="the user who mounts"
    )
    gid: int | None = _option(
        values.numeric_id, "Group of all files, as a number.", default="the group of that user"
    )
    umask: int = _option(
        values.umask,
        "Permissions to remove from 0444 of files and 0555 of directories (writable ones: 0644 "
        "and 0755).",
        0,
    )
    nonempty: bool = _switch("Mount over a directory with entries, which hides them.")
    fsname: str | None = _option(values.text, "Source in the mount table.", default="the source")
    timeout: float = _option(
        values.seconds, "Longest time of one operation on a remote store, retries included.", 120.0
    )
    translation_timeout: float = _option(
        values.seconds,
        "Longest time for finding the chunks of a NetCDF, HDF5, TIFF or GRIB file.",
        60.0,
    )
    drain_timeout: float | None = _option(
        values.seconds,
        "Longest time for storing changes when a mount with rw ends; the rest goes to the journal.",
        default="120",
    )
    disk_cache: str | None = _option(
        values.path,
        "Directory that keeps data read from a remote source, for all mounts of this user.",
    )
    disk_cache_size: int = _option(
        values.memory,
        "Largest size of disk_cache; the least recently used data goes first.",
        20 << 30,
        default="20G",
        metavar="BYTES",
    )
    storage_options: str | None = _option(
        values.path,
        "JSON file with arguments for the fsspec file system of a remote source; for fstab, and "
        "for secrets.",
        metavar="FILE",
    )
    loaders: int | None = _option(
        values.count, "Threads that fetch and decode chunks.", default="by CPUs and source"
    )
    workers: int | None = _option(
        values.count_or_none,
        "Processes that decode scans of local sources with chunks below 192 KiB or with fast "
        "codecs, and store small chunks; none with resize. With 0, threads do it.",
        default="by CPUs",
    )
    read_ahead_kb: int | None = _option(
        values.count_or_none,
        "Read-ahead of the kernel, in KiB; only root can change it.",
        default="1024, remote 4096",
    )
    max_background: int = _option(values.count, "Read-ahead requests of the kernel in flight.", 64)
    log_level: str = _choice(
        "debug|info|warning|error", "Lowest level of messages in the log.", value="info"
    )
    log_file: str | None = _option(
        values.path,
        "Append the log to this file.",
        default="syslog; stderr with -f",
        metavar="FILE",
    )


OPTIONS = tuple(Option(each.name, *each.metadata["row"]) for each in fields(MountOptions))

# mount(8), fstab and systemd pass these to every file system. A mount here is always
# nosuid and nodev, and has no executable files and no access times.
IGNORED = frozenset(
    (
        *("defaults", "default_permissions", "comment", "auto", "noauto", "nofail"),
        *("_netdev", "_rnetdev", "user", "nouser", "users", "owner", "group", "helper"),
        *("dev", "nodev", "suid", "nosuid"),
        *("exec", "noexec", "sync", "async", "dirsync", "silent", "loud"),
        *("atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime"),
        *("strictatime", "nostrictatime", "lazytime", "nolazytime", "iversion", "noiversion"),
    )
)
IGNORED_PREFIXES = ("x-", "X-")

IGNORED_HELP = (
    "Accepted without effect: default_permissions (always on), and options that mount(8) passes to "
    "all file systems: defaults, dev, suid, exec, atime and their opposites, _netdev, nofail, "
    "auto, user, comment=, x-*."
)
