"""What is in each directory of a mount, by name and one after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from itertools import islice

from zarrfs.errors import EntryNotFound, NotADirectory, StoreListingUnsupported
from zarrfs.fs import stat
from zarrfs.fs.attributes import Attributes, DirectoryEntry
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.nodes import STATUS_NAMES, Local, TreePlace
from zarrfs.fs.nodes.tree import Place, Tree

_ENTRIES_AT_ONCE = 128

Measure = Callable[[Sequence[Place]], Awaitable[list[Attributes]]]
"""The attributes of places, which must be there. Raises EntryNotFound."""


class Directories:
    """Loop only.

    measure : for the attributes of what is listed.
    """

    def __init__(self, tree: Tree, threads: Threads, measure: Measure) -> None:
        self._tree = tree
        self._threads = threads
        self._measure = measure
        self._listings: dict[int, list[str]] = {}

    def forget(self) -> None:
        """List all groups anew."""
        self._listings.clear()

    async def child(self, parent: Place, name: str) -> Place:
        """The entry ``name`` of a directory. Raises EntryNotFound, NotADirectory."""
        if not stat.is_directory(parent):
            raise NotADirectory(f"inode {parent.inode}")
        tree_place = parent.node.place(parent.local)
        if tree_place is not None:
            prefix = tree_place.tree.numbers.child(tree_place.prefix, name)
            if prefix is None:
                raise EntryNotFound(name)
            return parent.sibling(tree_place.tree.local(prefix))
        for known, local in _fixed_names(parent):
            if known == name:
                return await self._file_of_group(parent, name, local)
        if parent.local != Local.DIRECTORY or not parent.node.is_group:
            raise EntryNotFound(name)
        return await self._threads.run(lambda: self._tree.child(parent, name))

    async def _file_of_group(self, parent: Place, name: str, local: int) -> Place:
        """A file with a fixed name; a node that is stored under it comes before `GROUP_FILE`."""
        if local == Local.GROUP_FILE:
            with suppress(EntryNotFound):
                return await self._threads.run(lambda: self._tree.child(parent, name))
        return parent.sibling(local)

    async def entries(self, directory: Place, cookie: int) -> AsyncGenerator[DirectoryEntry, None]:
        """Entries after ``cookie``, 0 for all; without ``.`` and ``..``. Raises NotADirectory."""
        if not stat.is_directory(directory):
            raise NotADirectory(f"inode {directory.inode}")
        tree_place = directory.node.place(directory.local)
        if tree_place is not None:
            async with aclosing(self._tree_entries(directory, tree_place, cookie)) as entries:
                async for entry in entries:
                    yield entry
            return
        fixed = _fixed_names(directory)
        for position, (name, local) in enumerate(fixed, 1):
            if position > cookie:
                if local == Local.GROUP_FILE and name in await self._listing(directory, anew=True):
                    continue
                place = directory.sibling(local)
                try:
                    attributes = stat.unmeasured(place) or (await self._measure([place]))[0]
                except EntryNotFound:
                    continue
                yield DirectoryEntry(name, attributes, position)
        if directory.local == Local.DIRECTORY and directory.node.is_group:
            names = await self._listing(directory, anew=cookie <= len(fixed))
            start = max(0, cookie - len(fixed))
            for position, name in islice(enumerate(names, len(fixed) + 1), start, None):
                try:
                    (attributes,) = await self._measure([await self.child(directory, name)])
                except EntryNotFound:
                    continue
                yield DirectoryEntry(name, attributes, position)

    async def _listing(self, group: Place, *, anew: bool) -> list[str]:
        """Names of the children of a group; one listing serves a whole pass over it."""
        names = None if anew else self._listings.get(group.inode)
        if names is None:
            try:
                names = await self._threads.run(lambda: self._tree.children(group))
            except StoreListingUnsupported:
                # The children are there when asked for by name.
                names = []
            fixed = {name for name, local in _fixed_names(group) if local != Local.GROUP_FILE}
            names = [name for name in names if name not in fixed]
            self._listings[group.inode] = names
        return names

    async def _tree_entries(
        self, directory: Place, place: TreePlace, cookie: int
    ) -> AsyncGenerator[DirectoryEntry, None]:
        numbers = place.tree.children(place.prefix)
        if cookie < len(numbers) and stat.is_directory(directory.sibling(numbers[0])):
            # They differ in nothing but their inodes, and there may be very many.
            (like,) = await self._measure([directory.sibling(numbers[0])])
            for child in range(cookie, len(numbers)):
                attributes = like.of(directory.base + numbers[child])
                yield DirectoryEntry(str(child), attributes, child + 1)
            return
        for start in range(cookie, len(numbers), _ENTRIES_AT_ONCE):
            children = range(start, min(start + _ENTRIES_AT_ONCE, len(numbers)))
            places = [directory.sibling(numbers[child]) for child in children]
            for child, attributes in zip(children, await self._measure(places), strict=True):
                yield DirectoryEntry(str(child), attributes, child + 1)


def _fixed_names(directory: Place) -> list[tuple[str, int]]:
    if directory.local == Local.STATUS_DIRECTORY:
        return list(STATUS_NAMES.items())
    return list(directory.node.names())
