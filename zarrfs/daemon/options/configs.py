"""From the mount options to the config of each component."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from zarrfs.daemon.options.options import MountOptions
from zarrfs.daemon.places import journal_place, references_directory
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fuse.connection import TuningConfig
from zarrfs.fuse.presentation import PresentationConfig
from zarrfs.fuse.session import SessionConfig
from zarrfs.memory.default_memory import default_memory
from zarrfs.store.open import StoreConfig
from zarrfs.store.remote.icechunk.links import Version
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers.retry import RetryConfig

_READ_AHEAD_LOCAL_KB = 1024
_READ_AHEAD_REMOTE_KB = 4096

_ATTRIBUTE_S = 60.0
# A write through one view changes the times of all.
_ATTRIBUTE_WRITABLE_S = 1.0
_MISSING_S = 1.0
_IMMUTABLE_S = 86400.0


class Configs(NamedTuple):
    """The configs of all components; ``shown`` has the same for users, without secrets."""

    filesystem: FileSystemConfig
    presentation: PresentationConfig
    session: SessionConfig
    tuning: TuningConfig
    shown: Mapping[str, object]


def store_config(options: MountOptions, storage_options: Mapping[str, object]) -> StoreConfig:
    retry = RetryConfig(deadline_s=options.timeout)
    requests = RequestConfig(immutable=options.immutable)
    return StoreConfig(
        storage_options=storage_options,
        follow_symlinks=options.follow_symlinks,
        requests=requests,
        retry=retry,
        references=references_directory(),
        translation_timeout=options.translation_timeout,
        version=_version(options),
    )


def _version(options: MountOptions) -> Version | None:
    if options.branch is not None:
        return Version("branch", options.branch)
    if options.tag is not None:
        return Version("tag", options.tag)
    return None if options.snapshot is None else Version("snapshot", options.snapshot)


def configs(options: MountOptions, *, source: str, local: bool) -> Configs:
    """For a store shown as ``source`` that is on this machine or not."""
    recheck = math.inf if options.immutable else options.recheck
    attribute_seconds = _ATTRIBUTE_WRITABLE_S if options.rw else _ATTRIBUTE_S
    if options.immutable:
        attribute_seconds = _IMMUTABLE_S
    # A size that the kernel knows is not asked for.
    attribute_seconds = min(attribute_seconds, options.recheck_metadata)
    # The mount of one path cannot store the changes of another.
    part = f"{source}\0{options.path}" if options.path else source
    if options.overlay is not None:
        # Changes that an overlay could not take belong to it, not to the source or another overlay.
        part += f"\0\0{os.path.realpath(options.overlay)}"
    journal = journal_place(part, options.journal) if options.rw else None
    given = asdict(options)
    # A setting has the name of its option.
    filesystem = FileSystemConfig(
        **{name: value for name, value in given.items() if name in FileSystemConfig._fields}
        | {
            "memory": options.memory or default_memory(),
            "recheck": recheck,
            "writable": options.rw,
            "hide": frozenset(options.hide),
            "journal": journal,
            "attribute_seconds": attribute_seconds,
        }
    )
    presentation = PresentationConfig(
        uid=os.getuid() if options.uid is None else options.uid,
        gid=os.getgid() if options.gid is None else options.gid,
        umask=options.umask,
        # A name that is missing can appear as soon as data can have changed.
        missing_seconds=_MISSING_S if recheck is None else min(recheck, attribute_seconds),
    )
    session = SessionConfig(
        source=options.fsname or source,
        writable=options.rw,
        allow_other=options.allow_other,
        allow_root=options.allow_root,
    )
    tuning = TuningConfig(
        max_background=options.max_background,
        read_ahead_kb=_read_ahead_kb(options, local=local),
    )
    shown = given | {
        "uid": presentation.uid,
        "gid": presentation.gid,
        "umask": f"{presentation.umask:04o}",
        "memory": filesystem.memory,
        "recheck": recheck,
        "read_ahead_kb": tuning.read_ahead_kb,
        "fsname": session.source,
        "journal": filesystem.journal,
    }
    # JSON has no infinity.
    shown = {name: "never" if value == math.inf else value for name, value in shown.items()}
    return Configs(filesystem, presentation, session, tuning, shown)


def _read_ahead_kb(options: MountOptions, *, local: bool) -> int:
    if options.read_ahead_kb is not None:
        return options.read_ahead_kb
    return _READ_AHEAD_LOCAL_KB if local else _READ_AHEAD_REMOTE_KB
