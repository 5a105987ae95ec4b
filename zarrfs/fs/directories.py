"""The entries of each directory of a mount, by name and in order."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import trio

from zarrfs.errors import (
    EntryNotFound,
    NotADirectory,
    StoreError,
    StoreListingUnsupported,
    StoreTimeout,
    Unsupported,
    ZarrfsError,
    reason_of,
)
from zarrfs.format.metadata.documents import DOCUMENT_NAMES
from zarrfs.fs import stat
from zarrfs.fs.attributes import Attributes, DirectoryEntry
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.chunk_tree import TreePlace
from zarrfs.fs.nodes.nodes import STATUS_NAMES, Local, MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree

log = logging.getLogger(__name__)

_ENTRIES_AT_ONCE = 128
# The first part of the keys of chunks, in the usual encodings.
_KEY = re.compile(r"c|(c\.)?[0-9]+(\.[0-9]+)*", re.ASCII)
# As many as the kernel asks for at once.
_CHILDREN_AT_ONCE = 16
# Nodes of one group that a listing opens; larger groups it tells the names of: opening one takes a
# millisecond.
_MOST_OPENED = 1024

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

    async def child(self, parent: Place, name: str) -> Place:
        """The entry ``name`` of a directory. Raises EntryNotFound, NotADirectory, StoreError."""
        if not stat.is_directory(parent):
            raise NotADirectory(f"inode {parent.inode}")
        parent = await self._entered(parent)
        tree_place = parent.node.place(parent.local)
        if tree_place is not None:
            prefix = tree_place.tree.child(tree_place.prefix, name)
            if prefix is None:
                raise EntryNotFound(name)
            return parent.sibling(tree_place.tree.number(prefix))
        for known, local in _fixed_names(parent):
            if known == name:
                return await self._file_of_group(parent, name, local)
        if isinstance(parent.node, MountedArray):
            return _stored_key(parent, parent.node, name)
        if parent.local != Local.DIRECTORY or not parent.node.is_group:
            node = parent.node.node
            reason = None if node.metadata is not None or node.documents else node.problem
            if reason is not None and name not in DOCUMENT_NAMES:
                # Nobody knows which arrays a file has that could not be opened.
                raise StoreError(node.path, reason)
            if parent.node.node.metadata is None and _KEY.fullmatch(name):
                # A library would take it for a chunk never written.
                raise Unsupported(f"{name}: stored objects of this node are not shown")
            raise EntryNotFound(name)
        return await self._node(parent, name)

    async def _node(self, parent: Place, name: str) -> Place:
        """The group or array ``name`` in a group. Raises EntryNotFound."""
        if (place := self._tree.known_child(parent, name)) is None:
            place = await self._threads.run(lambda: self._tree.child(parent, name))
            self._tree.trim()
        return place

    async def _file_of_group(self, parent: Place, name: str, local: int) -> Place:
        """A file with a fixed name; a node that is stored under it comes before a group's file."""
        if parent.node.is_group_file(local):
            listed = self._tree.listings.recent(parent.node.node.path)
            if listed is not None and name not in listed:
                return parent.sibling(local)
            with suppress(EntryNotFound):
                return await self._node(parent, name)
        return parent.sibling(local)

    async def entries(self, directory: Place, cookie: int) -> AsyncGenerator[DirectoryEntry, None]:
        """Entries after ``cookie``, 0 for all; without ``.`` and ``..``. Raises NotADirectory."""
        if not stat.is_directory(directory):
            raise NotADirectory(f"inode {directory.inode}")
        directory = await self._entered(directory)
        tree_place = directory.node.place(directory.local)
        if tree_place is not None:
            async with aclosing(self._tree_entries(directory, tree_place, cookie)) as entries:
                async for entry in entries:
                    yield entry
            return
        if directory.node.key_prefix(directory.local) is not None:
            return
        fixed = _fixed_names(directory)
        hidden = self._tree.config.hide if isinstance(directory.node, MountedArray) else ()
        shown = [
            (position, name, directory.sibling(local))
            for position, (name, local) in enumerate(fixed, 1)
            if position > cookie and ("npy" if local == Local.NPY else name) not in hidden
        ]
        # A distant store gets all these requests at once.
        works: list[Callable[[], Awaitable[Any]]] = [
            partial(self._fixed_attributes, place) for _, _, place in shown
        ]
        is_group = directory.local == Local.DIRECTORY and directory.node.is_group
        if is_group:
            works.append(partial(self._listing, directory, go_on=cookie > len(fixed)))
        found = await _at_once(works)
        listed: list[str] | None = found.pop() if is_group else []
        names = listed or []
        most = min(_CHILDREN_AT_ONCE, _MOST_OPENED)
        few = is_group and cookie < len(fixed) and len(names) <= most
        opened = await self._children(directory, names) if few else None

        def lacks(local: int) -> bool:
            """Whether a file of arrays would have none. It can still be opened by name."""
            without = opened is not None and all(map(_is_group, opened))
            return without and directory.node.is_of_children(local)

        for (position, name, place), attributes in zip(shown, found, strict=True):
            # A node that is stored under the name of this file comes before it. And the file is of
            # the arrays that a listing has.
            of_group = directory.node.is_group_file(place.local)
            if of_group and (listed is None or name in names or lacks(place.local)):
                continue
            if attributes is not None:
                yield DirectoryEntry(name, attributes, position)
        async with aclosing(self._nodes(directory, names, fixed, cookie, opened)) as entries:
            async for entry in entries:
                yield entry

    async def _nodes(
        self,
        group: Place,
        names: Sequence[str],
        fixed: Sequence[tuple[str, int]],
        cookie: int,
        opened: list[Place | Exception | None] | None,
    ) -> AsyncGenerator[DirectoryEntry, None]:
        """Entries of the nodes of a group, which come after those with ``fixed`` names.

        opened : these nodes, if they are few and all of them are listed.
        """
        before = len(fixed)
        taken = {name for name, local in fixed if not group.node.is_group_file(local)}
        opens = len(names) <= _MOST_OPENED or group.node.node.entry is not None
        for start in range(max(0, cookie - before), len(names), _CHILDREN_AT_ONCE):
            batch = names[start : start + _CHILDREN_AT_ONCE]
            first = before + start + 1
            if not opens:
                for number, name in enumerate(batch, first):
                    if name not in taken:
                        yield DirectoryEntry(name, self._unknown(group, name), number)
                continue
            children = await self._children(group, batch) if opened is None else opened
            for number, (name, child) in enumerate(zip(batch, children, strict=True), first):
                attributes = await self._child_attributes(group, name, child)
                if attributes is not None and name not in taken:
                    yield DirectoryEntry(name, attributes, number)
            # Nodes to which these lists refer are in use, and stay.
            child = None
            children.clear()
            self._tree.trim()

    async def _entered(self, place: Place) -> Place:
        """The same directory; a file that is a store is opened at this first look-up."""
        if not place.node.is_unopened:
            return place
        return await self._threads.run(lambda: self._tree.enter(place))

    async def _attributes(self, place: Place) -> Attributes | None:
        """Attributes of a file or directory of a node; None if it does not exist.

        One that cannot be asked about is listed, and does not keep others from being listed.
        """
        try:
            return (await self._measure([place]))[0]
        except EntryNotFound:
            return None
        except Exception as error:  # noqa: BLE001 - of one entry, and the others go on
            self._unasked(place.node.node.path, error)
            return stat.unknown(place.inode, is_directory=stat.is_directory(place))

    async def _fixed_attributes(self, place: Place) -> Attributes | None:
        return stat.unmeasured(self._tree, place) or await self._attributes(place)

    async def _children(self, group: Place, names: Sequence[str]) -> list[Place | Exception | None]:
        """The nodes of these names in a group, opened in one hop to a thread.

        None for a node that does not exist, and the error for one that cannot be opened.
        """

        def opened() -> list[Place | Exception | None]:
            found: list[Place | Exception | None] = []
            for name in names:
                try:
                    found.append(self._tree.child(group, name))
                except EntryNotFound:
                    found.append(None)
                except StoreTimeout as error:
                    # The store is gone: the others would wait as long, one after the other.
                    return [*found, *[error] * (len(names) - len(found))]
                except Exception as error:  # noqa: BLE001 - of one entry, and the others go on
                    found.append(error)
            return found

        return await self._threads.run(opened)

    async def _child_attributes(
        self, group: Place, name: str, child: Place | Exception | None
    ) -> Attributes | None:
        """Attributes of a node in a group, as `_attributes`; `_children` returns ``child``."""
        if isinstance(child, Exception):
            if isinstance(child, StoreError):
                self._tree.stats.error(child.key, child.reason)
            self._unasked(f"{group.node.node.path}/{name}", child)
            return self._unknown(group, name)
        return None if child is None else await self._attributes(child)

    def _unknown(self, group: Place, name: str) -> Attributes:
        """Attributes of a node in a group that is not opened."""
        path = f"{group.node.node.path}/{name}".lstrip("/")
        return stat.unknown(self._tree.nodes.listed(path), is_directory=True)

    def _unasked(self, path: str, error: Exception) -> None:
        """Tells of a failure that a listing goes on after."""
        if isinstance(error, StoreTimeout):
            # The store is gone: the others would wait as long, one after the other.
            raise error
        if not isinstance(error, ZarrfsError):
            log.error("cannot list %s", f"/{path.lstrip('/')}", exc_info=error)
        if not isinstance(error, StoreError):  # which `Threads` has counted
            self._tree.stats.error(path.lstrip("/"), reason_of(error))

    async def _listing(self, group: Place, *, go_on: bool) -> list[str] | None:
        """Names of the children of a group, as `Listings.names`; None if the store cannot list."""
        listings, path = self._tree.listings, group.node.node.path
        if go_on and (names := listings.known(path)) is not None:
            return names
        try:
            return await self._threads.run(partial(listings.names, path, go_on=go_on))
        except StoreListingUnsupported:
            # The children are there when asked for by name.
            return None

    async def _tree_entries(
        self, directory: Place, place: TreePlace, cookie: int
    ) -> AsyncGenerator[DirectoryEntry, None]:
        numbers = place.tree.children(place.prefix)
        if cookie < len(numbers) and stat.is_directory(directory.sibling(numbers[0])):
            # They differ in nothing but their inodes, and there may be very many.
            (like,) = await self._measure([directory.sibling(numbers[0])])
            for child in range(cookie, len(numbers)):
                attributes = like._replace(inode=directory.sibling(numbers[child]).inode)
                yield DirectoryEntry(str(child), attributes, child + 1)
            return
        for start in range(cookie, len(numbers), _ENTRIES_AT_ONCE):
            children = range(start, min(start + _ENTRIES_AT_ONCE, len(numbers)))
            places = [directory.sibling(numbers[child]) for child in children]
            for child, attributes in zip(children, await self._measure(places), strict=True):
                yield DirectoryEntry(str(child), attributes, child + 1)


async def _at_once(works: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
    """The results of all ``works``, which run together. Raises the first error."""
    results: list[Any] = [None] * len(works)
    failed: list[Exception] = []

    async def one(number: int) -> None:
        try:
            results[number] = await works[number]()
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    if len(works) == 1:
        await one(0)
    else:
        async with trio.open_nursery() as nursery:
            for number in range(len(works)):
                nursery.start_soon(one, number)
    if failed:
        raise failed[0]
    return results


def _stored_key(parent: Place, array: MountedArray, name: str) -> Place:
    """The entry ``name`` among the keys of stored objects. Raises EntryNotFound, Unsupported."""
    prefix = array.key_prefix(parent.local)
    local = None
    if prefix is not None or parent.local == Local.DIRECTORY:
        local = array.keys.child(prefix, name)
    if local is None:
        raise EntryNotFound(name)
    return parent.sibling(local)


def _is_group(child: Place | Exception | None) -> bool:
    return child is None or (isinstance(child, Place) and child.node.is_group)


def _fixed_names(directory: Place) -> list[tuple[str, int]]:
    if directory.local == Local.STATUS_DIRECTORY:
        return list(STATUS_NAMES.items())
    if directory.node.key_prefix(directory.local) is not None:
        return []
    return list(directory.node.names())
