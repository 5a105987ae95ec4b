"""The Zarr groups above a source: an array has the same facts however it is named."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.neighbours import Neighbours, read_neighbours
from zarrfs.format.metadata.node import GroupMetadata
from zarrfs.store.open import StoreConfig, open_store, parent_of
from zarrfs.store.wrappers.retry import RetryConfig

log = logging.getLogger(__name__)

_MOST = 4
_SECONDS = 5.0


Groups = tuple[tuple[str, Mapping[str, Any]], ...]


class GroupsAbove(NamedTuple):
    """
    groups : the path of the source in each group above it, and the attributes of the group; the
        nearest comes first.
    neighbours : the arrays that were asked for, each in the nearest group that has it.
    """

    groups: Groups = ()
    neighbours: Neighbours = MappingProxyType({})


def groups_above(
    source: str,
    config: StoreConfig,
    zarr_format: int | None,
    names: Callable[[Groups], Sequence[str]] = lambda groups: (),
) -> GroupsAbove:
    """The groups above a source, and arrays beside it.

    names : the names of these arrays, from one of the groups as in `GroupsAbove.groups`.

    A directory or prefix that is no Zarr group ends the search, and so does a store that takes
    seconds. Blocks. Raises nothing: a group that cannot be read says nothing about the source.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    beside: Neighbours = {}
    once = config._replace(retry=RetryConfig(deadline_s=_SECONDS), openers=0)
    end = time.monotonic() + _SECONDS
    inside, parent = "", parent_of(source)
    while parent is not None and len(found) < _MOST and time.monotonic() < end:
        above, name = parent
        inside = f"{name}/{inside}".rstrip("/")
        try:
            attributes, said = _read(above, once, zarr_format, inside, names)
        except Exception as error:  # noqa: BLE001 - packages for stores raise any exception
            log.debug("no group above the source: %s", error)
            break
        if attributes is None:
            break
        found.append((inside, attributes))
        beside = {**said, **beside}
        parent = parent_of(above)
    return GroupsAbove(tuple(found), beside)


def _read(
    source: str,
    config: StoreConfig,
    zarr_format: int | None,
    inside: str,
    names: Callable[[Groups], Sequence[str]],
) -> tuple[Mapping[str, Any] | None, Neighbours]:
    """The attributes of a group, and arrays in it; None if there is no group."""
    store = open_store(source, config)
    try:
        hierarchy = Hierarchy(store, zarr_format)
        node = hierarchy.node("")
        if node is None or node.problem or not isinstance(node.metadata, GroupMetadata):
            return None, {}
        attributes = node.metadata.attributes
        wanted = names(((inside, attributes),))
        return attributes, read_neighbours(store, hierarchy.node, hierarchy.is_kept, "", wanted)
    finally:
        store.close()
