"""The option ``disk_cache``: what is read of a remote source is kept on a disk."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping

from zarrfs.daemon.options.options import MountOptions
from zarrfs.errors import UsageError
from zarrfs.format.metadata.documents import DOCUMENTS
from zarrfs.store.base import Store
from zarrfs.store.wrappers.cache_files import CacheFiles
from zarrfs.store.wrappers.disk_cache import DiskCacheStore

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
