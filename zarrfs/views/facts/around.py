"""From the path of an array to the attributes beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zarrfs.views.facts.facts import Around

_MOST_GROUPS = 8

Groups = Sequence[tuple[str, Mapping[str, Any]]]
"""Groups above, the nearest first: the path of a node in the group, the attributes of the group."""


def around(
    path: str,
    attributes_of: Callable[[str], Mapping[str, Any]],
    grid_mapping: Mapping[str, Any],
    outside: Groups = (),
) -> Around:
    """
    path : of the array in its source.
    attributes_of : the attributes of the group at a path in the source.
    outside : the groups above the source itself, with the path of the source in each.
    """
    names = path.split("/") if path else []
    groups = [
        ("/".join(names[depth:]), attributes_of("/".join(names[:depth])))
        for depth in range(len(names) - 1, max(-1, len(names) - 1 - _MOST_GROUPS), -1)
    ]
    groups += [(f"{inside}/{path}".rstrip("/"), attributes) for inside, attributes in outside]
    return Around(tuple(groups), grid_mapping)
