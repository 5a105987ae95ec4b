"""The attributes (`stat`) of each place in the tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from zarrfs.errors import EntryNotFound, ObjectNotFound, StoreError
from zarrfs.fs.attributes import Attributes
from zarrfs.fs.nodes.chunk_tree import TreePlace
from zarrfs.fs.nodes.group_files import MountedGroup
from zarrfs.fs.nodes.nodes import STATUS_FILES, Local, MountedArray, MountedFile
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree

# Counting what an array stores is cheap up to about this many objects: 1 ms where the kernel knows
# them, 6 where it does not, and on a disk that turns a second. Each program that opens a file for
# the first time waits for it: for 512 objects as long as for a plane of 64 chunks.
_MOST_COUNTED = 128
# Files that are passed through are changed by others.
_FILE_SECONDS = 1.0


def is_directory(place: Place) -> bool:
    if place.local in (Local.DIRECTORY, Local.STATUS_DIRECTORY):
        return not isinstance(place.node, MountedFile)
    if place.node.key_prefix(place.local) is not None:
        return place.node.stored_file(place.local) is None
    tree_place = place.node.place(place.local)
    return tree_place is not None and not tree_place.is_file


def needs_store(tree: Tree, place: Place) -> bool:
    """Whether `attributes` asks the store about this place."""
    node, local = place.node, place.local
    if node.document(local) is not None or node.is_group_file(local):
        return True
    if isinstance(node, MountedFile) or node.stored_file(local) is not None:
        return True
    if local == Local.DIRECTORY:
        return node.node.entry is not None
    return node.is_data(local) and (tree.store.traits.near or node.size_blocks(local))


def attributes(tree: Tree, place: Place, content_size: int = 0) -> Attributes:
    """The attributes of a place. May block if `needs_store` says so.

    content_size : of a file that is made when it is opened.
    """
    node, local = place.node, place.local
    fresh = tree.config.attribute_seconds
    mtime = node.changed_ns
    if isinstance(node, MountedFile):
        now = node.look()
        fresh = min(fresh, _FILE_SECONDS)
        return Attributes(
            place.inode, False, now.size, now.size, now.mtime_ns, fresh, mode=now.mode
        )
    if is_directory(place):
        removable = node.writable is not None and node.place(local) is not None
        mode = None
        if local == Local.DIRECTORY and node.node.entry is not None:
            # Permissions that are revoked below are revoked here, at the next look.
            mode = tree.source.present_mode(node.node.path)
            fresh = min(fresh, _FILE_SECONDS)
        return Attributes(place.inode, True, 0, 0, mtime, fresh, removable, mode=mode)
    if isinstance(node, MountedArray) and (index := node.stored_file(local)) is not None:
        if (info := node.array.array.stored_info(index)) is None:
            raise ObjectNotFound(node.array.array.key(index))
        # A library that has just seen it written must see what it is now.
        return Attributes(place.inode, False, info.size, info.size, info.mtime_ns or mtime, 0.0)
    if (key := node.document(local)) is not None:
        info, left = tree.documents.state(key)
        fresh = min(fresh, left)
        mtime = info.mtime_ns or mtime
        return Attributes(place.inode, False, info.size, info.size, mtime, fresh)
    if isinstance(node, MountedArray) and node.is_data(local):
        return _of_data(tree, node, place, mtime)
    if local in STATUS_FILES:
        # Made anew at each open, so nothing of it may be cached.
        return Attributes(place.inode, False, content_size, content_size, mtime, 0.0)
    if isinstance(node, MountedGroup) and node.is_group_file(local):
        file = node.file(local)
        mtime = _last_change(tree, [array for array, _ in file.shapes], mtime)
        # The kernel is not told of changes of its arrays.
        fresh = 0.0 if tree.config.writable else fresh
        size = file.form.size
        return Attributes(place.inode, False, size, size, mtime, fresh, file.writable)
    if local == Local.NOTE and node.note is not None:
        size = len(note_content(place))
        return Attributes(place.inode, False, size, size, mtime, fresh)
    raise EntryNotFound(f"inode {place.inode}")


def _of_data(tree: Tree, node: MountedArray, place: Place, mtime: int) -> Attributes:
    local, fresh, writable = place.local, tree.config.attribute_seconds, node.writable is not None
    size = node.data_size(local)
    stored = size
    if not node.is_header(local):
        stored, mtime = _stored(tree, node, local, size, mtime)
    if node.rows is None or node.place(local) is not None:
        return Attributes(place.inode, False, size, stored, mtime, fresh, writable)
    # A program that opens it to append must learn where it ends.
    fresh = fresh if node.rows.settled else 0.0
    return Attributes(place.inode, False, size, stored, mtime, fresh, writable, 0.0)


def unmeasured(tree: Tree, place: Place) -> Attributes | None:
    """For a listing: a file whose size would take reading all chunks, or a request to a distant
    store for each array below a group, is listed without it.

    The kernel must not cache it, so a later request for the size gets the true one.
    """
    node, local, near = place.node, place.local, tree.store.traits.near
    if isinstance(node, MountedGroup) and node.is_group_file(local):
        later = not (near and node.may_lack(local))
    elif (key := node.document(local)) is not None:
        root = not node.node.path
        later = not (near or root or node.node.problem or tree.documents.known(key))
    else:
        later = node.is_data(local) and node.size_blocks(local)
    return Attributes(place.inode, False, 0, 0, node.changed_ns, 0.0) if later else None


def unknown(inode: int, *, is_directory: bool) -> Attributes:
    """For a listing: an entry whose attributes cannot be read. A look-up returns the error."""
    return Attributes(inode, is_directory, 0, 0, 0, 0.0)


def note_content(place: Place) -> bytes:
    # A note may quote a document, which may quote what no encoding has.
    return f"{place.node.note}\n".encode(errors="backslashreplace")


def _stored(tree: Tree, node: MountedArray, local: int, size: int, mtime: int) -> tuple[int, int]:
    """Stored bytes behind a data file, where that is cheap to know, and its mtime."""
    if not tree.store.traits.near:
        return size, mtime
    place = node.place(local)
    try:
        if place is None:
            if (counted := node.stored_objects(_MOST_COUNTED)) is None:
                return size, mtime
            stored, mtime = counted[0], max(mtime, counted[1])
        else:
            stored, mtime = _stored_chunk(node, place, size, mtime)
        # Programs such as `tar -S` take a file without blocks for zeros.
        return stored or (0 if _is_zeros(node, local) else min(size, 1)), mtime
    except StoreError:
        # Only reads of the object return the error.
        return size, mtime


def _is_zeros(node: MountedArray, local: int) -> bool:
    """Whether a file of which nothing is stored has only bytes that are zero."""
    has_header = local != Local.FLAT and node.place(local) is None
    return not (node.writable or has_header or any(node.layout.fill))


def _last_change(tree: Tree, arrays: Sequence[MountedArray], mtime: int) -> int:
    """When the last of the arrays changed, as far as that is cheap to know."""
    left = _MOST_COUNTED if tree.store.traits.near else 0
    for array in arrays:
        mtime = max(mtime, array.changed_ns)
        possible = math.prod(array.layout.stored.counts)
        with suppress(StoreError):
            if possible <= left and (counted := array.stored_objects(left)) is not None:
                left -= possible
                mtime = max(mtime, counted[1])
    return mtime


def _stored_chunk(node: MountedArray, place: TreePlace, size: int, mtime: int) -> tuple[int, int]:
    array = node.array.array
    info = array.stored_info(node.stored_object(place))
    if info is None:
        return 0, mtime
    mtime = max(mtime, info.mtime_ns or 0)
    if place.tree.grid is node.layout.stored:
        return info.size, mtime
    length = array.inner_length(place.chunk, info)
    return (size if length < 0 else length), mtime
