"""Source and mount point must not lie in each other.

A store under its own mount point would be asked through the mount that it has to serve,
and the daemon would wait for itself. A mount point inside the store would be listed as
part of it, with the same end.
"""

from __future__ import annotations

import os

from zarrfs.errors import MountError


def check_disjoint(store_path: str | None, mount_point: str) -> None:
    """Raises `MountError` where a local store and the mount point are not separate.

    store_path : None for a store that is not a local directory.
    mount_point : absolute and without symbolic links.
    """
    if store_path is None:
        return
    store = os.path.realpath(store_path)
    if _within(store, mount_point):
        raise MountError(f"source {store} lies under the mount point {mount_point}")
    if _within(mount_point, store):
        raise MountError(f"mount point {mount_point} lies inside the source {store}")


def _within(path: str, directory: str) -> bool:
    return os.path.commonpath((path, directory)) == directory
