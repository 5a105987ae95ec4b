"""The option ``overlay``: changes are kept in a directory in place of the source."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from zarrfs.daemon.source.disjoint import check_disjoint
from zarrfs.errors import UsageError
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.store.base import Store
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import local_directory
from zarrfs.store.wrappers.overlay import OverlayStore

_CHANGED_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def overlaid(
    store: Store, directory: str, sources: Iterable[str], mount_point: str
) -> OverlayStore:
    """``store`` with the changes that ``directory`` keeps, which is made where it is missing.

    Raises UsageError for a directory that lies in a source or at the mount point, or that other
    users can change; StoreError for one that belongs to another source.
    """
    path = os.path.abspath(directory)
    for source in (mount_point, *filter(None, map(local_directory, sources))):
        inside = os.path.commonpath((os.path.realpath(path), os.path.realpath(source)))
        if inside == os.path.realpath(source):
            raise UsageError(f"option overlay: {path} lies in {source}")
    check_disjoint(path, mount_point)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError as error:
        raise UsageError(f"option overlay: {path}: {error.strerror}") from error
    if status.st_uid != os.geteuid() or status.st_mode & _CHANGED_BY_OTHERS:
        raise UsageError(f"option overlay: other users can change {path}")
    return OverlayStore(store, LocalStore(path), store.local_path or store.url, DOCUMENT_NAMES)
