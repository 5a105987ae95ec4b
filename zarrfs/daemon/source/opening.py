"""Opens what a mount shows: one source or several, with their wrappers."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from zarrfs.array.assumed_metadata import assume_metadata
from zarrfs.array.groups_above import groups_above
from zarrfs.array.making.array_documents import cut, encoded_alike, is_array, larger
from zarrfs.daemon.options.configs import store_config
from zarrfs.daemon.options.options import MountOptions
from zarrfs.daemon.own_mount_point import mount_name
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.any_directory import with_found_stores
from zarrfs.daemon.source.checks import check_disjoint, check_sources_disjoint, within
from zarrfs.errors import UsageError
from zarrfs.format.metadata.documents import (
    DOCUMENT_NAMES,
    DOCUMENTS,
    V1_ARRAY,
    V2_ARRAY,
    V3_NODE,
)
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.base import Store
from zarrfs.store.joined import JoinedStores, names_of
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import local_directory, open_store
from zarrfs.store.wrappers.cache_files import CacheFiles
from zarrfs.store.wrappers.disk_cache import DiskCacheStore
from zarrfs.store.wrappers.overlay import OverlayStore
from zarrfs.store.wrappers.overlay_arrays import MetadataComparison


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


_CHANGED_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
COMPARISON = MetadataComparison((V3_NODE, V2_ARRAY, V1_ARRAY), is_array, encoded_alike, larger, cut)


def overlaid(
    store: Store, directory: str, sources: Iterable[str], mount_point: str
) -> OverlayStore:
    """``store`` with the changes that ``directory`` keeps, which is made where it is missing.

    Raises UsageError for a directory that lies in a source or at the mount point, or that other
    users can change; StoreError for one that belongs to another source.
    """
    path = os.path.abspath(directory)
    for source in (mount_point, *filter(None, map(local_directory, sources))):
        if within(os.path.realpath(path), os.path.realpath(source)):
            raise UsageError(f"option overlay: {path} lies in {source}")
    check_disjoint(path, mount_point)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError as error:
        raise UsageError(f"option overlay: {path}: {error.strerror}") from error
    if status.st_uid != os.geteuid() or status.st_mode & _CHANGED_BY_OTHERS:
        raise UsageError(f"option overlay: other users can change {path}")
    source = store.local_path or store.url
    return OverlayStore(store, LocalStore(path), source, DOCUMENT_NAMES, COMPARISON)


# As long as other looks at a remote store hold.
_RECHECK = 30.0
# Where a bucket is, beside what the options say.
_PLACES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "STORAGE_EMULATOR_HOST")


def keep_on_disk(
    store: Store, source: str, options: MountOptions, storage_options: Mapping[str, object]
) -> Store:
    """``store`` with the cache that the options ask for, if they do. Raises UsageError."""
    if options.disk_cache is None:
        return store
    if store.local_path is not None:
        raise UsageError("option disk_cache needs a remote source, and this source is local")
    files = CacheFiles(options.disk_cache, options.disk_cache_size)
    recheck = math.inf if options.immutable or store.traits.immutable else options.recheck
    return DiskCacheStore(
        store,
        files,
        # A branch names another snapshot later, and the URL of the store names the snapshot.
        _identity(store.url if store.traits.immutable else source, storage_options),
        _RECHECK if recheck is None else recheck,
        # A reload must read metadata from the store.
        {name for names in DOCUMENTS.values() for name in names},
    )


def _identity(source: str, storage_options: Mapping[str, object]) -> str:
    """Tells places apart that have the same URL; of the options, which may be secret, a digest."""
    places = {name: os.environ.get(name) for name in _PLACES}
    identity = json.dumps([source, dict(storage_options), places], sort_keys=True, default=repr)
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
