"""Files of several arrays: what a format of groups gets, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import GroupForm


class Member(NamedTuple):
    """An array in or below a group.

    path : in the group.
    grid : of the chunks that are read.
    """

    path: str
    array: Described
    grid: ChunkGrid


@dataclass(frozen=True, slots=True)
class Grouped:
    """
    name : of the group; empty if it has none.
    members : the arrays that the format asked for, in its order, as far as they are there.
    others : names of the nodes that are none of these.
    """

    name: str
    attributes: Mapping[str, Any]
    members: Sequence[Member]
    others: Sequence[str] = field(default=())


def node_name(url: str, path: str) -> str:
    """The last part of the path of a node, or of the URL of its source."""
    return (path or url.rstrip("/")).rpartition("/")[2]


CHILDREN = None
"""In place of paths: all that is directly in the group."""


class GroupFormat(NamedTuple):
    """
    members : from the attributes of a group, the paths of the arrays that the file has, or of
        groups of arrays; or `CHILDREN`; no path if there is no such file at the group.
    make : raises `form.Inexpressible` if the format cannot represent the group.
    """

    members: Callable[[Mapping[str, Any]], Sequence[str] | None]
    make: Callable[[Grouped], GroupForm]
