"""The Zarr groups above a source: an array has the same facts however it is named."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.neighbours import MOST_GROUPS, Neighbour, Neighbours, read_neighbours
from zarrfs.format.metadata.node import GroupMetadata
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store, parent_of
from zarrfs.store.wrappers.retry import RetryConfig

log = logging.getLogger(__name__)

_SECONDS = 5.0

Groups: TypeAlias = tuple[tuple[str, Mapping[str, Any]], ...]


class GroupsAbove(NamedTuple):
    """
    groups : the path of the source in each group above it, and the attributes of the group; the
        nearest comes first.
    neighbours : the arrays that were asked for, each in the nearest group that has it.
    """

    groups: Groups = ()
    neighbours: Neighbours = MappingProxyType({})


NamesBeside: TypeAlias = Callable[[Groups], Sequence[str]]
"""The names of the arrays to read, from the groups above; it is called once."""


def nothing_above(names: NamesBeside) -> GroupsAbove:
    """As `groups_above` of a source that is in no group."""
    names(())
    return GroupsAbove()


def groups_above(
    source: str, config: StoreConfig, zarr_format: int | None, names: NamesBeside
) -> GroupsAbove:
    """The groups above a source, and arrays in them.

    A directory or prefix that is no Zarr group ends the search, and so does a store that takes
    seconds. Blocks. Raises nothing: a group that cannot be read says nothing about the source.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    once = config._replace(retry=RetryConfig(deadline_s=_SECONDS))
    end = time.monotonic() + _SECONDS
    inside, parent = "", parent_of(source)
    with ExitStack() as stack:
        opened: list[tuple[Store, Hierarchy]] = []
        while parent is not None and len(found) < MOST_GROUPS and time.monotonic() < end:
            above, name = parent
            inside = f"{name}/{inside}".rstrip("/")
            try:
                store = stack.enter_context(closing(open_store(above, once)))
                hierarchy = Hierarchy(store, zarr_format)
                node = hierarchy.node("")
            except Exception as error:  # noqa: BLE001 - packages for stores raise any exception
                log.debug("no group above the source: %s", error)
                break
            if node is None or node.problem or not isinstance(node.metadata, GroupMetadata):
                break
            found.append((inside, node.metadata.attributes))
            opened.append((store, hierarchy))
            parent = parent_of(above)
        return GroupsAbove(tuple(found), _read(opened, names(tuple(found))))


def _read(opened: Sequence[tuple[Store, Hierarchy]], names: Sequence[str]) -> Neighbours:
    """The arrays of these names, each in the nearest group that has it."""
    found: dict[str, Neighbour] = {}
    for nearest, (store, hierarchy) in enumerate(opened):
        wanted = [name for name in names if name not in found]
        if nearest and not store.traits.near:
            wanted = list(filter(hierarchy.is_kept, wanted))
        found |= read_neighbours(store, hierarchy.node, hierarchy.is_kept, "", wanted)
    return found
