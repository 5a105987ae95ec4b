"""From a place to the bytes of its file, for one reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.errors import EntryNotFound, NotPermitted
from zarrfs.fs import stat
from zarrfs.fs.coherence.kernel_pages import KernelPages, OpenPlaces
from zarrfs.fs.loop.threads import Threads
from zarrfs.fs.nodes.group_files import MountedGroup
from zarrfs.fs.nodes.nodes import STATUS_FILES, Local, MountedArray, MountedFile
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree
from zarrfs.fs.status import MountStatus
from zarrfs.views.bytes_view import BytesView
from zarrfs.views.view import WritableView


class Content(NamedTuple):
    """
    arrays : those whose elements the file has.
    version : of the bytes that are none of elements.
    """

    view: WritableView
    arrays: tuple[MountedArray, ...] = ()
    version: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Contents:
    """Loop only.

    places : what is open.
    """

    tree: Tree
    status: MountStatus
    threads: Threads
    pages: KernelPages
    places: OpenPlaces

    async def open(self, place: Place, *, truncate: bool) -> Content:
        """The bytes of a file, as the store has them now. Raises NotPermitted, EntryNotFound."""
        node, local = place.node, place.local
        if isinstance(node, MountedArray) and node.is_data(local):
            await self._check(node)
            if node.view_blocks(local):
                return Content(await self.threads.run(lambda: node.view(local)), (node,))
            return Content(node.view(local), (node,))
        if isinstance(node, MountedFile):
            return Content(await self.threads.run(node.view))
        if isinstance(node, MountedGroup) and node.is_group_file(local):
            file = await self.threads.run(lambda: node.file(local))
            for array in file.arrays:
                await self._check(array)
            return Content(await self.threads.run(file.view), file.arrays, file.version)
        if truncate:
            raise NotPermitted("only the data of arrays can be written to")
        return Content(await self._without_elements(place))

    async def _without_elements(self, place: Place) -> WritableView:
        node, local = place.node, place.local
        if local in STATUS_FILES:
            return BytesView(self.status.content(local))
        if local == Local.NOTE:
            return BytesView(stat.note_content(place))
        if isinstance(node, MountedArray) and (stored := node.stored_file(local)) is not None:
            return await self.threads.run(lambda: self.tree.stored_file(node, stored))
        if (key := node.document(local)) is None:
            raise EntryNotFound(f"inode {place.inode}")
        return BytesView(await self.threads.run(lambda: self.tree.documents.read(key)))

    async def _check(self, node: MountedArray) -> None:
        """Have the store asked for changes if it is time; tell the kernel of any."""
        if not node.array.freshness.due():
            return
        reading = {place.inode for place in self.places.of(node)} & self.places.read_inodes
        if await self.threads.run(node.array.check):
            for place in self.places.of(node):
                self.pages.kernel.drop(place.inode)
        # These reads may return bytes that are older than the check.
        for inode in reading:
            self.pages.outdated(inode)
