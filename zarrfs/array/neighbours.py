"""Small arrays beside an array that say what its elements mean: coordinates and grid mappings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs import bounds
from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.node_readers import Node, join
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Store

log = logging.getLogger(__name__)

MOST_GROUPS = 8
"""Groups above an array that are asked, the nearest first."""
_MOST = 1 << 17
"""Elements of coordinates that are read."""
_MOST_CHUNKS = 64
_MEMORY = 4 << 20
"""Bytes for the chunks of one array."""


class Neighbour(NamedTuple):
    """
    path : of the array.
    values : the elements of an array of one axis, native numbers, counts of times; None of any
        other, of a long one, and of one that cannot be read.
    """

    path: str
    metadata: ArrayMetadata
    values: NDArray[Any] | None = None


Neighbours = Mapping[str, Neighbour]
"""By name."""


def read_neighbours(
    store: Store,
    node: Callable[[str], Node | None],
    is_kept: Callable[[str], bool],
    group: str,
    names: Iterable[str],
) -> Neighbours:
    """The arrays of these names in a group, or else in the nearest group above, as CF has it.

    node : finds the node at a path; raises ZarrfsError.
    is_kept : whether that takes no request; see `Hierarchy.is_kept`. In the groups above, a remote
        store is not asked: it would get several requests for each name, one after another.

    Blocks. Raises nothing: others are left out.
    """
    found: dict[str, Neighbour] = {}
    groups = [group]
    while groups[-1] and len(groups) < MOST_GROUPS:
        groups.append(groups[-1].rpartition("/")[0])
    for name in filter(bounds.is_name, names):
        for path in (join(place, name) for place in groups):
            if path != join(group, name) and not (is_kept(path) or store.traits.near):
                break
            try:
                metadata = None if (there := node(path)) is None else there.metadata
                if isinstance(metadata, ArrayMetadata):
                    found[name] = Neighbour(path, metadata)
                    found[name] = Neighbour(path, metadata, _values(store, path, metadata))
            except ZarrfsError as error:
                log.debug("%s says nothing about its neighbours: %s", path, error)
            if name in found:
                break
    return found


def _values(store: Store, path: str, metadata: ArrayMetadata) -> NDArray[Any] | None:
    """Raises ZarrfsError."""
    grid, data_type = metadata.layout.read, metadata.layout.data_type
    if len(metadata.shape) != 1 or not 0 < metadata.elements <= _MOST:
        return None
    if not data_type.fixed_size or data_type.dtype.kind not in "iufmM":
        return None
    if grid.chunks > _MOST_CHUNKS:
        return None
    array = Array(store, path, metadata, PartCache(_MEMORY), ArrayConfig(_MEMORY))
    values = np.empty(metadata.shape, data_type.dtype)
    for result in array.read_chunks([(i,) for i in range(grid.chunks)]):
        if result.error is not None or result.chunk is None:
            return None
        (first,), (length,) = grid.origin(result.index), grid.valid_shape(result.index)
        values[first : first + length] = result.chunk.reshape(-1)[:length]
    return values.view("i8") if values.dtype.kind in "mM" else values
