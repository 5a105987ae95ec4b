"""Opens what a mount shows: one source or several, with their wrappers."""

from __future__ import annotations

import functools
from contextlib import ExitStack

from zarrfs.array.assumed_metadata import assume_metadata
from zarrfs.array.groups_above import groups_above
from zarrfs.daemon.options.configs import store_config
from zarrfs.daemon.own_mount_point import mount_name
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.any_directory import with_found_stores
from zarrfs.daemon.source.disjoint import check_sources_disjoint
from zarrfs.daemon.source.disk_cache import keep_on_disk
from zarrfs.daemon.source.overlay import overlaid
from zarrfs.errors import UsageError
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.base import Store
from zarrfs.store.joined import JoinedStores, names_of
from zarrfs.store.open import local_directory, open_store


def open_source(request: MountRequest, stack: ExitStack) -> Store:
    """The source with its wrappers; ``stack`` closes them."""
    store = _open_sources(request, stack)
    if (directory := request.options.overlay) is not None:
        store = overlaid(store, directory, request.sources, request.place)
        stack.callback(store.close)
    return store


def _open_sources(request: MountRequest, stack: ExitStack) -> Store:
    options = request.options
    config = store_config(options, request.storage_options)

    def open_one(source: str) -> Store:
        store = open_store(source, config)
        stack.callback(store.close)
        if request.more and store.local_path is not None:
            return store
        return keep_on_disk(store, source, options, request.storage_options)

    if request.more:
        if options.assume_metadata is not None:
            raise UsageError("option assume_metadata is for one source")
        if options.rw:
            check_sources_disjoint(request.sources)
        names = names_of(request.sources, mount_name)
        return JoinedStores(dict(zip(names, map(open_one, request.sources), strict=True)))
    store = open_one(request.source)
    if options.assume_metadata is not None:
        return assume_metadata(store, options.assume_metadata)
    if options.overlay is None:
        store = with_found_stores(store, options, config)
    stack.callback(store.close)
    return store


def with_groups_above(config: FileSystemConfig, request: MountRequest) -> FileSystemConfig:
    """The config of a file system that finds the groups above its source when it needs them."""
    if request.more:
        return config
    # An absolute path, because the daemon leaves its directory.
    source = local_directory(request.source) or request.source
    options = store_config(request.options, request.storage_options)
    search = functools.partial(groups_above, source, options, request.options.zarr_format)
    return config._replace(groups_above=search)
