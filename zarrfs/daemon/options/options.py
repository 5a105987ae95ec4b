"""The mount options: one table with their explanations, and the functions that read values."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from zarrfs.daemon.options import option_values as values
from zarrfs.format.metadata.kept import UseConsolidated
from zarrfs.views.headers.registry import FORMATS


class MountOptions(NamedTuple):
    """The options of one mount; `OPTIONS` explains each.

    None: zarrfs chooses when it mounts; for ``spill``: no directory.
    """

    rw: bool = False
    store_fill: bool = False
    resize: bool = False
    allow_remove: bool = False
    flush_delay: float = 5.0
    xattr: bool = False
    journal: str | None = None
    allow_other: bool = False
    allow_root: bool = False
    uid: int | None = None
    gid: int | None = None
    umask: int = 0
    nonempty: bool = False
    fsname: str | None = None
    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"
    path: str = ""
    region: str | None = None
    hide: tuple[str, ...] = ()
    views: tuple[str, ...] = ("default",)
    fill_missing: bool = True
    zarr_format: Literal[1, 2, 3] | None = None
    consolidated: UseConsolidated = "auto"
    memory: int | None = None
    spill: str | None = "/var/tmp"
    loaders: int | None = None
    workers: int | None = None
    assume_metadata: str | None = None
    branch: str | None = None
    tag: str | None = None
    snapshot: str | None = None
    recheck: float | None = None
    recheck_metadata: float = math.inf
    immutable: bool = False
    follow_symlinks: bool = False
    timeout: float = 120.0
    translation_timeout: float = 60.0
    drain_timeout: float | None = None
    disk_cache: str | None = None
    disk_cache_size: int = 20 << 30
    storage_options: str | None = None
    read_ahead_kb: int | None = None
    max_background: int = 64
    log_level: str = "info"
    log_file: str | None = None


HIDEABLE = MappingProxyType({"chunks": "chunks", "shards": "shards", "npy": "array.npy"})
"""What ``hide`` may name, and the name of each in the directory of an array."""


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


def _switch(name: str, explanation: str) -> Option:
    return Option(name, "", "off", explanation, values.flag)


OPTIONS: tuple[Option, ...] = (
    _switch("rw", "Let programs change the data of arrays; ro, the default, cancels it."),
    Option(
        "flush_delay",
        "SECONDS",
        "5",
        "Store a change after this time, if no fsync or close stores it before.",
        values.seconds,
    ),
    Option(
        "journal",
        "DIR",
        "in the user's state directory",
        "Directory for changes that cannot be stored when the mount ends; the next mount with rw "
        "stores them.",
        values.path,
    ),
    _switch("store_fill", "Also store chunks that hold only the fill value."),
    _switch(
        "resize",
        "With rw: a new size of array.bin or array.npy resizes the array along its first axis.",
    ),
    _switch(
        "allow_remove",
        "With rw: removing a file of a chunk or shard sets its elements to the fill value.",
    ),
    _switch(
        "xattr",
        "Extended attributes also with rw, where they make small writes slower.",
    ),
    Option(
        "byteorder",
        "little|big",
        "little",
        "Byte order of the elements in array.bin, array.npy and chunk files; in structs, of every "
        "field.",
        values.one_of("little", "big"),
    ),
    Option(
        "order",
        "C|F",
        "C",
        "Order of the elements in array.bin and array.npy: C (last axis fastest) or F "
        "(first axis fastest: MATLAB, Fortran, Julia).",
        values.one_of("C", "F"),
    ),
    Option(
        "path",
        "PATH",
        "all of the source",
        "Show only the group or array at this path of the source.",
        values.node_path,
    ),
    Option(
        "region",
        "START:STOP,…",
        "the whole array",
        "Show only this box of the array that is mounted: START:STOP, or one INDEX, for each axis.",
        values.region,
    ),
    Option(
        "hide",
        "NAME,…",
        "nothing",
        "Names to leave out of listings: chunks, shards, npy (array.npy). cp -r, rsync and "
        "find then "
        "skip them. Programs can still open them.",
        values.some_of(*HIDEABLE),
    ),
    Option(
        "views",
        "all|none|NAME,…",
        "npy, nhdr, bin.hdr, h5; tif and nii of images",
        "Formats in which arrays appear beside array.bin, as array.NAME, if the format can express "
        "the array: " + ", ".join(FORMATS) + ", default, and those of other packages.",
        values.views,
    ),
    Option(
        "fill_missing",
        "true|false",
        "true",
        "true: a chunk that is not stored reads as the fill value; false: reading it is an error.",
        values.flag,
    ),
    Option(
        "zarr_format",
        "1|2|3",
        "the newest in the source",
        "Open only this version of Zarr.",
        values.zarr_format,
    ),
    Option(
        "consolidated",
        "auto|never|only",
        "auto, which is never with rw",
        "Whether consolidated metadata decide what is below a group that has them: auto; never: "
        "each array and group is read from its own documents; only: nothing else is read.",
        values.one_of("auto", "never", "only"),
    ),
    Option(
        "assume_metadata",
        "FILE",
        "the source's own",
        "Use the zarr.json or .zarray in FILE in place of that of the source.",
        values.path,
    ),
    Option(
        "branch",
        "NAME",
        "main",
        "Of an Icechunk repository, show the snapshot that is the tip of this branch at the mount.",
        values.text,
    ),
    Option("tag", "NAME", "none", "Of an Icechunk repository, show this tag.", values.text),
    Option(
        "snapshot",
        "ID",
        "none",
        "Of an Icechunk repository, show the snapshot with this id.",
        values.text,
    ),
    Option(
        "memory",
        "SIZE",
        "a quarter of the RAM, at most 1G",
        "Memory budget for decoded chunks and changes, with a unit K, M or G; at least 16M. "
        "Scans in "
        "C order are fast if one row of chunks fits.",
        values.memory,
    ),
    Option(
        "spill",
        "DIR|none",
        "/var/tmp",
        "Directory for unnamed files in place of memory: for scans that need more decoded chunks "
        "than memory holds, and for writes in order to such rows of chunks; at most two rows of "
        "chunks each.",
        values.path_or_none,
    ),
    Option(
        "recheck",
        "SECONDS|never|always",
        "1, remote 30",
        "Age after which an open asks the store again whether data has changed.",
        values.recheck,
    ),
    Option(
        "recheck_metadata",
        "SECONDS|never|always",
        "never",
        "Age after which a look-up reads the metadata of an array or group again. If shape or type "
        "have changed, programs must open its files again.",
        values.recheck,
    ),
    _switch("immutable", "The source never changes, so zarrfs never checks it again."),
    _switch("follow_symlinks", "Follow symbolic links that lead out of a local source."),
    _switch("allow_other", "Let other users use the mount, according to its permissions."),
    _switch("allow_root", "Let root use the mount of another user."),
    Option(
        "uid", "N", "the user who mounts", "Owner of all files, as a number.", values.numeric_id
    ),
    Option(
        "gid", "N", "the group of that user", "Group of all files, as a number.", values.numeric_id
    ),
    Option(
        "umask",
        "OCTAL",
        "0",
        "Permissions to remove from 0444 of files and 0555 of directories (writable ones: 0644 and "
        "0755).",
        values.umask,
    ),
    _switch("nonempty", "Mount over a directory with entries, which hides them."),
    Option("fsname", "NAME", "the source", "Source in the mount table.", values.text),
    Option(
        "timeout",
        "SECONDS",
        "120",
        "Longest time of one operation on a remote store, retries included.",
        values.seconds,
    ),
    Option(
        "translation_timeout",
        "SECONDS",
        "60",
        "Longest time for finding the chunks of a NetCDF, HDF5, TIFF or GRIB file.",
        values.seconds,
    ),
    Option(
        "drain_timeout",
        "SECONDS",
        "120",
        "Longest time for storing changes when a mount with rw ends; the rest goes to the journal.",
        values.seconds,
    ),
    Option(
        "disk_cache",
        "DIR",
        "none",
        "Directory that keeps data read from a remote source, for all mounts of this user.",
        values.path,
    ),
    Option(
        "disk_cache_size",
        "BYTES",
        "20G",
        "Largest size of disk_cache; the least recently used data goes first.",
        values.memory,
    ),
    Option(
        "storage_options",
        "FILE",
        "none",
        "JSON file with arguments for the fsspec file system of a remote source; for fstab, "
        "and for "
        "secrets.",
        values.path,
    ),
    Option(
        "loaders",
        "N",
        "by CPUs and source",
        "Threads that fetch and decode chunks.",
        values.count,
    ),
    Option(
        "workers",
        "N",
        "by CPUs",
        "Processes that decode scans of local sources with chunks below 1 MiB or fast codecs, and "
        "store small chunks; none with resize. With 0, threads do it.",
        values.count_or_none,
    ),
    Option(
        "read_ahead_kb",
        "N",
        "1024, remote 4096",
        "Read-ahead of the kernel, in KiB; only root can change it.",
        values.count_or_none,
    ),
    Option(
        "max_background",
        "N",
        "64",
        "Read-ahead requests of the kernel in flight.",
        values.count,
    ),
    Option(
        "log_level",
        "debug|info|warning|error",
        "info",
        "Lowest level of messages in the log.",
        values.one_of("debug", "info", "warning", "error"),
    ),
    Option(
        "log_file",
        "FILE",
        "syslog; stderr with -f",
        "Append the log to this file.",
        values.path,
    ),
)

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
