"""The Zarr groups above a source: an array has the same facts however it is named."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.bounds import is_name
from zarrfs.format.metadata.node import GroupMetadata
from zarrfs.store.open import StoreConfig, open_store, parent_of
from zarrfs.store.wrappers.retry import RetryConfig

log = logging.getLogger(__name__)

_MOST = 4
_SECONDS = 5.0


class GroupsAbove(NamedTuple):
    """
    groups : the path of the source in each group above it, and the attributes of the group; the
        nearest comes first.
    neighbour : the attributes of the array that was asked for, in the nearest group.
    """

    groups: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    neighbour: Mapping[str, Any] = MappingProxyType({})


def groups_above(
    source: str, config: StoreConfig, zarr_format: int | None, neighbour: str
) -> GroupsAbove:
    """The groups above a source, and an array beside it.

    neighbour : the name of that array; empty: none.

    A directory or prefix that is no Zarr group ends the search, and so does a store that takes
    seconds. Blocks. Raises nothing: a group that cannot be read says nothing about the source.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    beside: Mapping[str, Any] = {}
    once = config._replace(retry=RetryConfig(deadline_s=_SECONDS), openers=0)
    end = time.monotonic() + _SECONDS
    inside, parent = "", parent_of(source)
    while parent is not None and len(found) < _MOST and time.monotonic() < end:
        above, name = parent
        inside = f"{name}/{inside}".rstrip("/")
        try:
            attributes, said = _attributes(above, once, zarr_format, "" if found else neighbour)
        except Exception as error:  # noqa: BLE001 - packages for stores raise any exception
            log.debug("no group above the source: %s", error)
            break
        if attributes is None:
            break
        found.append((inside, attributes))
        beside = said or beside
        parent = parent_of(above)
    return GroupsAbove(tuple(found), beside)


def _attributes(
    source: str, config: StoreConfig, zarr_format: int | None, member: str
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """The attributes of a group and of a node in it; None if there is no group."""
    store = open_store(source, config)
    try:
        hierarchy = Hierarchy(store, zarr_format)
        node = hierarchy.node("")
        if node is None or node.problem or not isinstance(node.metadata, GroupMetadata):
            return None, {}
        below = hierarchy.node(member) if is_name(member) else None
        said = {} if below is None or below.metadata is None else below.metadata.attributes
        return node.metadata.attributes, said
    finally:
        store.close()
