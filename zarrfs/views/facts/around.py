"""From the path of an array to the attributes beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs.array.groups_above import Groups, GroupsAbove, NamesBeside
from zarrfs.array.neighbours import MOST_GROUPS, Neighbour, Neighbours
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.coordinates import coordinates_in
from zarrfs.views.facts.facts import Around
from zarrfs.views.facts.ome import ome_level
from zarrfs.views.facts.place.georeference import grid_mapping

_MOST_AXES = 8


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
        for depth in range(len(names) - 1, max(-1, len(names) - 1 - MOST_GROUPS), -1)
    ]
    groups += [(f"{inside}/{path}".rstrip("/"), attributes) for inside, attributes in outside]
    del groups[MOST_GROUPS:]
    mapping = neighbours.get(grid_mapping(metadata.attributes))
    said = {} if mapping is None else mapping.metadata.attributes
    return Around(tuple(groups), said, coordinates_in(neighbours))


def read_outside(
    path: str,
    attributes_of: Callable[[str], Mapping[str, Any]],
    metadata: ArrayMetadata,
    beside: Callable[[Sequence[str]], Neighbours],
    search: Callable[[NamesBeside], GroupsAbove],
) -> GroupsAbove:
    """All that `around` takes beside the attributes of groups in the source.

    beside : the arrays of the given names beside the array, or in the groups of the source above.
    search : the same in the groups above the source.
    """
    found: dict[str, Neighbour] = {}

    def names(groups: Groups) -> list[str]:
        known = around(path, attributes_of, metadata, {}, groups)
        wanted = names_beside(metadata, known)
        found.update(beside(wanted) if path else {})
        return [name for name in wanted if name not in found]

    above = search(names)
    return above._replace(neighbours={**above.neighbours, **found})


def names_beside(metadata: ArrayMetadata, above: Around) -> list[str]:
    """The names of the arrays beside an array that may say what its elements mean.

    They have coordinates, unless the groups above say where its elements lie, or a grid mapping.
    """
    level = ome_level(above, len(metadata.shape))
    known = level is not None and level.spacing is not None
    axes = () if known or "dimension_units" in metadata.attributes else metadata.dimension_names
    names = [name for name in axes if name and name != above.name][:_MOST_AXES]
    return list(filter(None, dict.fromkeys([*names, grid_mapping(metadata.attributes)])))
