"""The mount options, in one table: types, defaults, explanations, and how a value is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
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


def _option(value: Any, *row: Any) -> Any:
    """A field with the default ``value``; ``row`` is its `Option` without the name."""
    return field(default=value, metadata={"row": row})


def _switch(explanation: str) -> Any:
    return _option(False, "", "off", explanation, values.flag)


@dataclass(frozen=True, slots=True)
class MountOptions:
    """The options of one mount.

    None: zarrfs chooses when it mounts; for ``spill``: no directory.
    """

    rw: bool = _switch("Let programs change the data of arrays; ro, the default, cancels it.")
    flush_delay: float = _option(
        5.0,
        "SECONDS",
        "5",
        "Store a change after this time, if no fsync or close stores it before.",
        values.seconds,
    )
    journal: str | None = _option(
        None,
        "DIR",
        "in the user's state directory",
        "Directory for changes that cannot be stored when the mount ends; the next mount with rw "
        "stores them.",
        values.path,
    )
    overlay: str | None = _option(
        None,
        "DIR",
        "none",
        "Keep changes in this directory and leave the source as it is; zarrfs diff lists them, "
        "zarrfs commit stores them in the source.",
        values.path,
    )
    store_fill: bool = _switch("Also store chunks that hold only the fill value.")
    resize: bool = _switch(
        "With rw: a new size of array.bin or array.npy resizes the array along its first axis."
    )
    allow_remove: bool = _switch(
        "With rw: removing a file of a chunk or shard sets its elements to the fill value."
    )
    xattr: bool = _switch("Extended attributes also with rw, where they make small writes slower.")
    byteorder: Literal["little", "big"] = _option(
        "little",
        "little|big",
        "little",
        "Byte order of the elements in array.bin, array.npy and chunk files; in structs, of every "
        "field.",
        values.one_of("little", "big"),
    )
    order: Literal["C", "F"] = _option(
        "C",
        "C|F",
        "C",
        "Order of the elements in array.bin and array.npy: C (last axis fastest) or F "
        "(first axis fastest: MATLAB, Fortran, Julia).",
        values.one_of("C", "F"),
    )
    path: str = _option(
        "",
        "PATH",
        "all of the source",
        "Show only the group or array at this path of the source.",
        values.node_path,
    )
    region: str | None = _option(
        None,
        "START:STOP,…",
        "the whole array",
        "Show only this box of the array that is mounted: START:STOP, or one INDEX, for each axis.",
        values.region,
    )
    names: Literal["array", "node"] = _option(
        "array",
        "array|node",
        "array",
        "Names of the files of an array: array.bin, array.tif and so on, or with node its own: "
        "raw.bin, raw.tif of an array raw. Those of groups stay group.h5, image.ome.tif.",
        values.one_of("array", "node"),
    )
    hide: tuple[str, ...] = _option(
        (),
        "NAME,…",
        "nothing",
        "Names to leave out of listings: chunks, shards, npy (array.npy). cp -r, rsync and "
        "find then "
        "skip them. Programs can still open them.",
        values.some_of(*HIDEABLE),
    )
    views: tuple[str, ...] = _option(
        ("default",),
        "all|none|NAME,…",
        "npy, nhdr, bin.hdr, h5; tif and nii of images, cog.tif of maps, image.ome.tif and "
        "image.tif of pyramids",
        "Formats in which arrays appear beside array.bin, as array.NAME, if the format can express "
        "the array: " + ", ".join(FORMATS) + ", default, and those of other packages. Files of "
        "groups: h5 also shows group.h5; " + ", ".join(GROUP_OPTIONS) + ".",
        values.views,
    )
    fill_missing: bool = _option(
        True,
        "true|false",
        "true",
        "true: a chunk that is not stored reads as the fill value; false: reading it is an error.",
        values.flag,
    )
    zarr_format: Literal[1, 2, 3] | None = _option(
        None,
        "1|2|3",
        "the newest in the source",
        "Open only this version of Zarr.",
        values.zarr_format,
    )
    consolidated: Literal["auto", "never", "only"] = _option(
        "auto",
        "auto|never|only",
        "auto, which is never with rw",
        "Whether consolidated metadata decide what is below a group that has them: auto; never: "
        "each array and group is read from its own documents; only: nothing else is read.",
        values.one_of("auto", "never", "only"),
    )
    assume_metadata: str | None = _option(
        None,
        "FILE",
        "the source's own",
        "Use the zarr.json or .zarray in FILE in place of that of the source.",
        values.path,
    )
    branch: str | None = _option(
        None,
        "NAME",
        "main",
        "Of an Icechunk repository, show the snapshot that is the tip of this branch at the mount.",
        values.text,
    )
    tag: str | None = _option(
        None, "NAME", "none", "Of an Icechunk repository, show this tag.", values.text
    )
    snapshot: str | None = _option(
        None,
        "ID",
        "none",
        "Of an Icechunk repository, show the snapshot with this id.",
        values.text,
    )
    memory: int | None = _option(
        None,
        "SIZE",
        "a quarter of the RAM, at most 1G",
        "Memory budget for decoded chunks and changes, with a unit K, M or G; at least 16M. "
        "Scans in "
        "C order are fast if one row of chunks fits.",
        values.memory,
    )
    spill: str | None = _option(
        "/var/tmp",
        "DIR|none",
        "/var/tmp",
        "Directory for unnamed files in place of memory: for scans that need more decoded chunks "
        "than memory holds, and for writes in order to such rows of chunks; at most two rows of "
        "chunks each.",
        values.path_or_none,
    )
    recheck: float | None = _option(
        None,
        "SECONDS|never|always",
        "1, remote 30",
        "Age after which an open asks the store again whether data has changed.",
        values.recheck,
    )
    recheck_metadata: float = _option(
        math.inf,
        "SECONDS|never|always",
        "never",
        "Age after which a look-up reads the metadata of an array or group again. If shape or type "
        "have changed, programs must open its files again.",
        values.recheck,
    )
    immutable: bool = _switch("The source never changes, so zarrfs never checks it again.")
    follow_symlinks: bool = _switch("Follow symbolic links that lead out of a local source.")
    allow_other: bool = _switch("Let other users use the mount, according to its permissions.")
    allow_root: bool = _switch("Let root use the mount of another user.")
    uid: int | None = _option(
        None, "N", "the user who mounts", "Owner of all files, as a number.", values.numeric_id
    )
    gid: int | None = _option(
        None, "N", "the group of that user", "Group of all files, as a number.", values.numeric_id
    )
    umask: int = _option(
        0,
        "OCTAL",
        "0",
        "Permissions to remove from 0444 of files and 0555 of directories (writable ones: 0644 and "
        "0755).",
        values.umask,
    )
    nonempty: bool = _switch("Mount over a directory with entries, which hides them.")
    fsname: str | None = _option(
        None, "NAME", "the source", "Source in the mount table.", values.text
    )
    timeout: float = _option(
        120.0,
        "SECONDS",
        "120",
        "Longest time of one operation on a remote store, retries included.",
        values.seconds,
    )
    translation_timeout: float = _option(
        60.0,
        "SECONDS",
        "60",
        "Longest time for finding the chunks of a NetCDF, HDF5, TIFF or GRIB file.",
        values.seconds,
    )
    drain_timeout: float | None = _option(
        None,
        "SECONDS",
        "120",
        "Longest time for storing changes when a mount with rw ends; the rest goes to the journal.",
        values.seconds,
    )
    disk_cache: str | None = _option(
        None,
        "DIR",
        "none",
        "Directory that keeps data read from a remote source, for all mounts of this user.",
        values.path,
    )
    disk_cache_size: int = _option(
        20 << 30,
        "BYTES",
        "20G",
        "Largest size of disk_cache; the least recently used data goes first.",
        values.memory,
    )
    storage_options: str | None = _option(
        None,
        "FILE",
        "none",
        "JSON file with arguments for the fsspec file system of a remote source; for fstab, "
        "and for "
        "secrets.",
        values.path,
    )
    loaders: int | None = _option(
        None, "N", "by CPUs and source", "Threads that fetch and decode chunks.", values.count
    )
    workers: int | None = _option(
        None,
        "N",
        "by CPUs",
        "Processes that decode scans of local sources with chunks below 192 KiB or with fast "
        "codecs, and store small chunks; none with resize. With 0, threads do it.",
        values.count_or_none,
    )
    read_ahead_kb: int | None = _option(
        None,
        "N",
        "1024, remote 4096",
        "Read-ahead of the kernel, in KiB; only root can change it.",
        values.count_or_none,
    )
    max_background: int = _option(
        64, "N", "64", "Read-ahead requests of the kernel in flight.", values.count
    )
    log_level: str = _option(
        "info",
        "debug|info|warning|error",
        "info",
        "Lowest level of messages in the log.",
        values.one_of("debug", "info", "warning", "error"),
    )
    log_file: str | None = _option(
        None, "FILE", "syslog; stderr with -f", "Append the log to this file.", values.path
    )


OPTIONS = tuple(Option(each.name, *each.metadata["row"]) for each in fields(MountOptions))

# mount(8), fstab and systemd pass these to every file system. A mount here is always
# nosuid and nodev, and has no executable files and no access times.
IGNORED = frozenset(
    (
        *(
            "defaults",
            "default_permissions",
            "comment",
            "auto",
            "noauto",
            "_netdev",
            "_rnetdev",
            "nofail",
        ),
        *("user", "nouser", "users", "owner", "group", "helper", "dev", "nodev", "suid", "nosuid"),
        *("exec", "noexec", "sync", "async", "dirsync", "silent", "loud"),
        *("atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime"),
        *("strictatime", "nostrictatime", "lazytime", "nolazytime", "iversion", "noiversion"),
    )
)
IGNORED_PREFIXES = ("x-", "X-")

IGNORED_HELP = (
    "Accepted without effect: default_permissions (always on), and options that mount(8) passes to "
    "all file systems: defaults, dev, suid, exec, atime and their opposites, _netdev, nofail, "
    "auto, "
    "user, comment=, x-*."
)
