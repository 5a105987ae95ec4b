"""A source that is a directory of data of any kind, of which some is Zarr."""

from __future__ import annotations

import functools
from collections import deque

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import join
from zarrfs.daemon.options.options import MountOptions
from zarrfs.errors import StoreError
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.store.base import Store
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, open_found
from zarrfs.store.plain_directory import PlainDirectory

# Where so many names are seen and none is of Zarr, who mounts that knows why.
_MOST_NAMES = 10_000


def with_found_stores(store: Store, options: MountOptions, config: StoreConfig) -> Store:
    """The directory with all that lies in it, where it is no array or group itself.

    A directory without anything that could be a store stays what it is, to be refused. So does
    one that is to be written to.
    """
    if not isinstance(store, LocalStore) or not holds_others(store, options):
        return store
    guard(store, options)
    others = options.allow_other or options.allow_root
    plain = PlainDirectory(store, functools.partial(open_found, config=config), others=others)
    return plain if _has_stores(plain) else store


def holds_others(store: Store, options: MountOptions) -> bool:
    """Whether stores may be found in a local directory, because it is no array or group itself."""
    return not options.rw and Hierarchy(store, options.zarr_format).node("") is None


def guard(store: LocalStore, options: MountOptions) -> None:
    """Have a store in which others are found give no user more than that user may read below."""
    if options.allow_other or options.allow_root:
        store.show_to_others()
    # Root may read all anyway.
    if options.allow_other:
        store.guard_objects()


def _has_stores(plain: PlainDirectory) -> bool:
    directories, seen = deque([""]), 0
    while directories:
        path = directories.popleft()
        try:
            for name in plain.list_dir(path):
                seen += 1
                below = join(path, name.rstrip("/"))
                if seen > _MOST_NAMES or name in DOCUMENT_NAMES:
                    return True
                if name.endswith("/"):
                    entry = plain.entry(below)
                    if entry is not None and entry.form == "store":
                        return True
                    directories.append(below)
        except StoreError:
            continue  # a look-up there returns the error
    return False
