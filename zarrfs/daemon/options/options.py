"""The mount options: one table that explains them, and how the value of each is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from zarrfs.daemon.options import option_values as values
from zarrfs.views.headers.registry import FORMATS


class MountOptions(NamedTuple):
    """What a mount is told, as `OPTIONS` explains it.

    None: chosen when it is mounted; of ``spill``: nowhere.
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
    region: str | None = None
    hide: tuple[str, ...] = ()
    views: tuple[str, ...] = ("default",)
    fill_missing: bool = True
    zarr_format: Literal[1, 2, 3] | None = None
    memory: int | None = None
    spill: str | None = "/var/tmp"
    loaders: int | None = None
    workers: int | None = None
    assume_metadata: str | None = None
    recheck: float | None = None
    recheck_metadata: float = math.inf
    immutable: bool = False
    follow_symlinks: bool = False
    timeout: float = 120.0
    drain_timeout: float | None = None
    disk_cache: str | None = None
    disk_cache_size: int = 20 << 30
    retries: int = 7
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
    _switch("rw", "Let the data of the arrays be written to; ro, the default, takes it back."),
    Option(
        "flush_delay",
        "SECONDS",
        "5",
        "How long a change may wait to be stored when nobody asks with fsync or close.",
        values.seconds,
    ),
    Option(
        "journal",
        "DIR",
        "below the user's state directory",
        "Where changes are kept that cannot be stored when the mount ends; the next mount "
        "with rw stores them.",
        values.path,
    ),
    _switch("store_fill", "Store chunks that hold nothing but the fill value."),
    _switch(
        "resize",
        "Let array.bin and array.npy grow and shrink with rw, which resizes the first axis.",
    ),
    _switch(
        "allow_remove",
        "Let files of chunks and shards be removed with rw, which makes their elements fill value.",
    ),
    _switch(
        "xattr",
        "Extended attributes with rw too, which makes small writes slower; always on with ro.",
    ),
    Option(
        "byteorder",
        "little|big",
        "little",
        "Byte order of the elements in array.bin, array.npy and the chunk files; of structs, that "
        "of every field.",
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
        "Leave chunks, shards or npy (array.npy) out of listings, so that cp -r, rsync and find "
        "pass them by. Who knows their names can open them.",
        values.some_of(*HIDEABLE),
    ),
    Option(
        "views",
        "all|none|NAME,…",
        "npy, nhdr, bin.hdr, h5; tif and nii of images",
        "In which formats arrays are shown beside array.bin, as array.NAME, where a format can "
        "express the array: " + ", ".join(FORMATS) + ", default, and those of other packages.",
        values.views,
    ),
    Option(
        "fill_missing",
        "true|false",
        "true",
        "Whether a chunk that is not stored reads as the fill value; with false it is an error.",
        values.flag,
    ),
    Option(
        "zarr_format",
        "1|2|3",
        "the newest there is",
        "The only version of Zarr to look for.",
        values.zarr_format,
    ),
    Option(
        "assume_metadata",
        "FILE",
        "the source's own",
        "Take the zarr.json or .zarray in FILE for that of the source, which need not have any.",
        values.path,
    ),
    Option(
        "memory",
        "SIZE",
        "a quarter of the RAM, at most 1G",
        "Budget for decoded chunks and for changes, with a unit K, M or G; at least 16M. A "
        "scan in C order is fast when one row of chunks fits.",
        values.memory,
    ),
    Option(
        "spill",
        "DIR|none",
        "/var/tmp",
        "Where decoded chunks go, in a file without a name, when a scan needs more of them at once "
        "than memory holds, and what is written in order to such a row of chunks until the row is "
        "whole; at most two rows of chunks each.",
        values.path_or_none,
    ),
    Option(
        "recheck",
        "SECONDS|never|always",
        "1, remote 30",
        "How long after a look at the store an open may rely on it.",
        values.recheck,
    ),
    Option(
        "recheck_metadata",
        "SECONDS|never|always",
        "never",
        "How long after a look at the metadata of an array or group a look-up of its files may "
        "rely on them. Of an array of another shape or type, what is open has to be opened again.",
        values.recheck,
    ),
    _switch("immutable", "The source never changes: nothing is ever asked twice."),
    _switch("follow_symlinks", "Follow symbolic links that lead out of a local source."),
    _switch("allow_other", "Let other users use the mount, as its permissions say."),
    _switch("allow_root", "Let root use the mount, where another user mounts."),
    Option("uid", "N", "who mounts", "Owner of all files, as a number.", values.numeric_id),
    Option("gid", "N", "who mounts", "Group of all files, as a number.", values.numeric_id),
    Option(
        "umask",
        "OCTAL",
        "0",
        "Permissions taken away from 0444 of files and 0555 of directories (0644 and 0755 of "
        "those that can be written to).",
        values.umask,
    ),
    _switch("nonempty", "Mount over a directory that has entries, which hides them."),
    Option("fsname", "NAME", "the source", "What the mount table shows as source.", values.text),
    Option(
        "timeout",
        "SECONDS",
        "120",
        "How long one operation on a remote store may take, retries included.",
        values.seconds,
    ),
    Option(
        "drain_timeout",
        "SECONDS",
        "120",
        "How long storing changes may take when a mount with rw ends; what is left then goes to "
        "the journal.",
        values.seconds,
    ),
    Option(
        "disk_cache",
        "DIR",
        "none",
        "A directory where what is read of a remote source is kept, for this user's other mounts "
        "and later ones too.",
        values.path,
    ),
    Option(
        "disk_cache_size",
        "BYTES",
        "20G",
        "What disk_cache may take; what was used least recently goes first.",
        values.memory,
    ),
    Option(
        "retries",
        "N",
        "7",
        "How often an operation on a remote store is tried again.",
        values.count_or_none,
    ),
    Option(
        "storage_options",
        "FILE",
        "none",
        "A JSON file with arguments for the fsspec file system of a remote source: the way "
        "for fstab, and for secrets.",
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
        "Processes that decode scans of local sources, where chunks have less than 1 MiB or decode "
        "as fast as they are copied, and encode small chunks that are written there; none with "
        "resize. 0 leaves that to threads.",
        values.count_or_none,
    ),
    Option(
        "read_ahead_kb",
        "N",
        "1024, remote 4096",
        "How far the kernel reads ahead, in KiB; only root can change it.",
        values.count_or_none,
    ),
    Option(
        "max_background",
        "N",
        "64",
        "How many read-ahead requests the kernel keeps in flight.",
        values.count,
    ),
    Option(
        "log_level",
        "debug|info|warning|error",
        "info",
        "How much is logged.",
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

# What mount(8), fstab and systemd pass to every file system. A mount here is always
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
    "Accepted and without effect: default_permissions (always on), and what mount(8) passes on: "
    "defaults, dev, suid, exec, atime and their opposites, _netdev, nofail, auto, user, "
    "comment=, x-*."
)
