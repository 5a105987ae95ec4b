"""Checks of a source: it lies apart from the mount point, and shows others nothing private.

A store under its own mount point would be asked through the mount that it has to serve,
and the daemon would wait for itself. A mount point inside the store would be listed as
part of it, with the same end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from zarrfs.daemon.options.options import MountOptions
from zarrfs.errors import MountError, UsageError
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.store.open import local_directory


def check_disjoint(store_path: str | None, mount_point: str) -> None:
    """Raises `MountError` where a local store and the mount point are not separate.

    store_path : None for a store that is not a local directory.
    mount_point : absolute and without symbolic links.
    """
    if store_path is None:
        return
    store = os.path.realpath(store_path)
    if within(store, mount_point):
        raise MountError(f"source {store} lies under the mount point {mount_point}")
    if within(mount_point, store):
        raise MountError(f"mount point {mount_point} lies inside the source {store}")


def check_sources_disjoint(sources: Sequence[str]) -> None:
    """Raises `UsageError` where a source is another one too, or lies in it.

    Their arrays would have two names in a mount, each with caches of its own.
    """
    places = [_parts(source) for source in sources]
    for (inner, place), (outer, around) in permutations(zip(sources, places, strict=True), 2):
        if place[: len(around)] == around:
            raise UsageError(f"{inner} lies in {outer}: with -o rw, name it once")


def _parts(source: str) -> list[str]:
    """The parts of a path without links, or of a URL."""
    path = local_directory(source)
    place = source if path is None else os.path.realpath(path)
    return ["" if path is None else "/", *filter(None, place.split("/"))]


def within(path: str, directory: str) -> bool:
    """Whether ``path`` is the directory, or lies in it. Both are absolute and without links."""
    return os.path.commonpath((path, directory)) == directory


_READ, _ENTER = 0o004, 0o005


def shows_private(source: str, options: MountOptions) -> str | None:
    """The path of what others could not read but for the mount; None where there is none.

    Looked at are the directories from the source's to that which is shown, and their metadata
    documents.
    """
    if not options.allow_other or options.umask & _READ:
        return None
    if (directory := local_directory(source)) is None:
        return None
    shown = Path(options.path)
    places = []
    for below in (*reversed(shown.parents), shown) if options.path else (shown,):
        places.append((Path(directory, below), _ENTER))
        places += [(Path(directory, below, name), _READ) for name in sorted(DOCUMENT_NAMES)]
    for path, needed in places:
        try:
            if os.stat(path).st_mode & needed != needed:
                return str(path)
        except OSError:
            continue
    return None
