"""From the path of an array to the attributes beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs.array.neighbours import Neighbours
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.coordinates import coordinates_in
from zarrfs.views.facts.facts import Around
from zarrfs.views.facts.georeference import grid_mapping
from zarrfs.views.facts.ome import ome_level

_MOST_GROUPS = 8
_MOST_AXES = 8

Groups = Sequence[tuple[str, Mapping[str, Any]]]
"""Groups above, the nearest first: the path of a node in the group, the attributes of the group."""


def around(
    path: str,
    attributes_of: Callable[[str], Mapping[str, Any]],
    metadata: ArrayMetadata,
    neighbours: Neighbours,
    outside: Groups = (),
) -> Around:
    """
    path : of the array in its source.
    attributes_of : the attributes of the group at a path in the source.
    neighbours : the arrays beside it of which `names_beside` has the names.
    outside : the groups above the source itself, with the path of the source in each.
    """
    names = path.split("/") if path else []
    groups = [
        ("/".join(names[depth:]), attributes_of("/".join(names[:depth])))
        for depth in range(len(names) - 1, max(-1, len(names) - 1 - _MOST_GROUPS), -1)
    ]
    groups += [(f"{inside}/{path}".rstrip("/"), attributes) for inside, attributes in outside]
    mapping = neighbours.get(grid_mapping(metadata.attributes))
    said = {} if mapping is None else mapping.metadata.attributes
    return Around(tuple(groups), said, coordinates_in(neighbours))


def names_beside(metadata: ArrayMetadata, above: Around) -> list[str]:
    """The names of the arrays beside an array that may say what its elements mean.

    They have coordinates, unless the groups above say where its elements lie, or a grid mapping.
    """
    level = ome_level(above, len(metadata.shape))
    known = level is not None and level.spacing is not None
    axes = () if known or "dimension_units" in metadata.attributes else metadata.dimension_names
    names = [name for name in axes if name and name != above.name][:_MOST_AXES]
    return list(filter(None, dict.fromkeys([*names, grid_mapping(metadata.attributes)])))
