"""Files of several arrays: what a format of groups gets, and what it returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import GroupForm

MOST_MEMBERS = 4000
"""Nodes that are looked at for a file."""

T = TypeVar("T")


class Below(Enum):
    """In place of paths: all that is directly in the group, or wherever below it."""

    CHILDREN = 1
    HIERARCHY = 2


Wanted: TypeAlias = Sequence[str] | Below


class Member(NamedTuple):
    """An array in or below a group.

    path : in the group.
    grid : of the chunks that are read.
    texts : the elements in UTF-8, in C order, if they are texts of any length.
    count : how many elements of fixed size have given bytes. It reads all of them.
    """

    path: str
    array: Described
    grid: ChunkGrid
    texts: Sequence[bytes] | None = None
    count: Callable[[bytes], int] = lambda _: 0


@dataclass(frozen=True, slots=True)
class Grouped:
    """
    name : of the group; empty if it has none.
    members : the arrays that the format asked for, in its order, as far as they are there.
    others : names of the nodes that are neither arrays nor groups.
    groups : the attributes of the groups that it asked for, by path.
    """

    name: str
    attributes: Mapping[str, Any]
    members: Sequence[Member]
    others: Sequence[str] = field(default=())
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def find_members(
    wanted: Wanted,
    names: Callable[[str], Iterable[str]],
    find: Callable[[str], T | None],
    is_group: Callable[[T], bool],
) -> Iterator[tuple[str, T]]:
    """The nodes that a format asks for, parents first, and those in groups whose paths it gives.

    names : of the nodes in a group at a path; empty for the group itself.
    find : the node at a path; None if there is none.
    """
    paths = [*names("")] if isinstance(wanted, Below) else wanted
    inside = wanted is Below.HIERARCHY
    due = deque((path, inside or not isinstance(wanted, Below)) for path in paths)
    while due:
        path, enters = due.popleft()
        if (node := find(path)) is None:
            continue
        yield path, node
        if enters and is_group(node):
            due.extend((f"{path}/{name}", inside) for name in names(path))


class GroupFormat(NamedTuple):
    """
    members : from the attributes of a group, the paths of the arrays that the file has, or of
        groups of arrays; no path if there is no such file at the group.
    make : raises `form.Inexpressible` if the format cannot represent the group.
    always : whether it represents any group whose arrays are all its children, or all below it.
    """

    members: Callable[[Mapping[str, Any]], Wanted]
    make: Callable[[Grouped], GroupForm]
    always: bool = True
