"""Opens what a user names: a store and the nodes in it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal

from zarrfs.array.assumed_metadata import assume_metadata
from zarrfs.array.groups_above import groups_above, nothing_above
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.neighbours import read_neighbours
from zarrfs.array.node_readers import Node, join
from zarrfs.cache.caches import CacheConfig, Caches
from zarrfs.errors import (
    StoreListingUnsupported,
    UnsupportedError,
    UsageError,
    ZarrfsError,
)
from zarrfs.format.metadata.kept import UseConsolidated
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.memory.default_memory import LEAST_MEMORY, default_memory
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers.retry import RetryConfig
from zarrfs.views.facts.around import around, read_outside
from zarrfs.views.facts.facts import Around

_NAMES_IN_HINT = 4


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a source is opened. The defaults are those of ``zarrfs mount``.

    memory : bytes for decoded chunks, changes and all that is being worked on, at least
        16 MiB; None: a quarter of the RAM, at most 1 GiB.
    loaders : threads that fetch and decode, and as many that encode and store; None: one
        more than there are processors for a local store, 32 for a remote one.
    recheck : seconds for which what was read is relied on before the store is asked
        whether it has changed; 0 always asks, infinity never; None: 1, for a remote store 30.
    fill_missing : whether a chunk that is not stored reads as the fill value; else it is
        an error.
    store_fill : whether chunks of nothing but fill values are stored when written.
    zarr_format : the only version of Zarr to look for; None: the newest there is.
    consolidated : whether consolidated metadata decide what is below a group that has them
        (``auto``, but not for writing), never do, or are the only ones that are read.
    storage_options : given to fsspec as they are; never shown.
    follow_symlinks : whether to follow symbolic links that lead out of a local source.
    assume_metadata : file with a ``zarr.json`` or ``.zarray`` that counts as that of the
        source, whatever it has itself; None: the source's own count.
    timeout : seconds that one operation on a remote store may take, retries included.
    """

    memory: int | None = None
    loaders: int | None = None
    recheck: float | None = None
    fill_missing: bool = True
    store_fill: bool = False
    zarr_format: Literal[1, 2, 3] | None = None
    consolidated: UseConsolidated = "auto"
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    follow_symlinks: bool = False
    assume_metadata: str | None = None
    timeout: float = 120.0

    def __post_init__(self) -> None:
        """Raises UsageError for what cannot be."""
        if self.memory is not None and self.memory < LEAST_MEMORY:
            raise UsageError(f"memory is {self.memory}, less than the {LEAST_MEMORY} needed")
        if self.loaders is not None and self.loaders < 1:
            raise UsageError(f"loaders is {self.loaders}, must be at least 1")
        if self.recheck is not None and not self.recheck >= 0:
            raise UsageError(f"recheck is {self.recheck}, must not be negative")
        if not (0 < self.timeout < math.inf):
            raise UsageError("timeout must be above 0")

    @property
    def memory_bytes(self) -> int:
        return default_memory() if self.memory is None else self.memory

    def store_config(self) -> StoreConfig:
        return StoreConfig(
            storage_options=self.storage_options,
            follow_symlinks=self.follow_symlinks,
            requests=RequestConfig(immutable=self.recheck == math.inf),
            retry=RetryConfig(deadline_s=self.timeout),
        )

    def cache_config(self, *, writable: bool, memory: int, flush_delay: float = 5.0) -> CacheConfig:
        return CacheConfig(
            memory=memory,
            loaders=self.loaders,
            fill_missing=self.fill_missing,
            recheck=self.recheck,
            writable=writable,
            store_fill=self.store_fill,
            flush_delay=flush_delay,
        )


def source_name(source: str | os.PathLike[str]) -> str:
    """The text that names a source also in a process with another working directory."""
    name = os.fspath(source)
    return name if "://" in name or "::" in name else os.path.abspath(name)


def open_source(source: str, options: SourceOptions) -> Store:
    """The store that ``source`` names. Raises ZarrfsError."""
    store = open_store(source, options.store_config())
    if options.assume_metadata is None:
        return store
    try:
        return assume_metadata(store, options.assume_metadata)
    except BaseException:
        store.close()
        raise


def open_caches(
    store: Store, options: SourceOptions, *, memory: int | None = None
) -> closing[Caches]:
    """A context of caches for reading; ``memory`` in bytes, None: all that the options give."""
    size = options.memory_bytes if memory is None else memory
    return closing(Caches(store, options.cache_config(writable=False, memory=size)))


def find_array(
    store: Store, path: str, options: SourceOptions, *, writable: bool = False
) -> tuple[Node, ArrayMetadata]:
    """The array at ``path``; for writing, as its own documents describe it.

    Raises as `Hierarchy.reach`, UnsupportedError for one that cannot be
    served, and UsageError for a group.
    """
    if writable and options.consolidated == "auto":
        options = replace(options, consolidated="never")
    node = hierarchy_of(store, options).reach(path)
    if node.metadata is None:
        raise UnsupportedError(join(store.url, node.path), node.problem or "cannot be served")
    if isinstance(node.metadata, ArrayMetadata):
        return node, node.metadata
    raise UsageError(f"{join(store.url, node.path)} is a group{_members(store, node, options)}")


def hierarchy_of(store: Store, options: SourceOptions) -> Hierarchy:
    """The nodes of a store."""
    return Hierarchy(store, options.zarr_format, consolidated=options.consolidated)


def facts_around(source: str, store: Store, node: Node, options: SourceOptions) -> Around:
    """The groups above an array, and the arrays beside it that say what its elements mean.

    source : what the user named, which may be in a group itself. A remote store is asked only if
        that is the array.

    Nothing where they cannot be read.
    """
    hierarchy = hierarchy_of(store, options)

    def attributes(path: str) -> Mapping[str, Any]:
        try:
            found = hierarchy.reach(path)
        except ZarrfsError:
            return {}
        return {} if found.metadata is None else found.metadata.attributes

    metadata = node.metadata
    if not isinstance(metadata, ArrayMetadata):
        return Around()
    search = nothing_above
    if store.traits.near or not node.path:
        search = partial(groups_above, source, options.store_config(), options.zarr_format)
    group = node.path.rpartition("/")[0]
    beside = partial(read_neighbours, store, hierarchy.reach, hierarchy.is_kept, group)
    outside = read_outside(node.path, attributes, metadata, beside, search)
    return around(node.path, attributes, metadata, outside.neighbours, outside.groups)


def _members(store: Store, group: Node, options: SourceOptions) -> str:
    """A hint about the path that the user may have meant."""
    hierarchy = hierarchy_of(store, options)
    hierarchy.node(group.path)
    try:
        names = list(islice(hierarchy.children(group.path), _NAMES_IN_HINT + 1))
    except (StoreListingUnsupported, ZarrfsError):
        return ""
    if not names:
        return " without members"
    more = ", …" if len(names) > _NAMES_IN_HINT else ""
    some = ", ".join(names[:_NAMES_IN_HINT])
    return f", not an array; it has {some}{more} (choose one with --path, in Python with path=)"
