"""From a group to one file with several of its arrays."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import Node, join
from zarrfs.cache.caches import Caches
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import ChunkError, NodeNotFound, UnsupportedError, UsageError
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.library.source import facts_around, hierarchy_of, open_caches, open_source
from zarrfs.library.transfer.output_file import output
from zarrfs.library.transfer.transfer import TransferConfig
from zarrfs.store.base import Store
from zarrfs.views.bits import count_equal
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView, StreamView
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.form import LARGEST_HEADER, GroupForm, Inexpressible
from zarrfs.views.headers.grouped import (
    MOST_MEMBERS,
    Below,
    Grouped,
    Member,
    Wanted,
    find_members,
)
from zarrfs.views.headers.hdf5.file import MOST_TEXTS
from zarrfs.views.headers.names import node_name
from zarrfs.views.headers.registry import find_group_format
from zarrfs.views.slabs.slabs import Slabs
from zarrfs.views.tiles.boxes import Boxes
from zarrfs.views.tiles.gathered import GatheredView, Section, WholeFile
from zarrfs.views.tiles.tiling import Tiling
from zarrfs.views.variable import read_texts
from zarrfs.views.view import Data

_AHEAD = 4
_PIECE = 4 << 20
# Blocks of zeros alone, as lie between boxes, are not written to a file: it has holes there.
_BLOCK = 64 << 10


def export_group(
    source: str, target: str, name: str, config: TransferConfig, *, overwrite: bool = False
) -> int:
    """Write the file ``name`` of a group, such as ``image.ome.tif``. Blocks.

    source, target : as for `export_array`; ``config.path`` is that of the group.

    Returns the bytes written. Raises ZarrfsError: UsageError for an array, UnsupportedError for a
    group that the format cannot represent, and the others of `export_array`.
    """
    with closing(open_source(source, config.source)) as store:
        node = hierarchy_of(store, config.source).reach(config.path)
        if not isinstance(node.metadata, GroupMetadata):
            raise UsageError(f"{join(store.url, node.path)} is not a group, which {name} needs")
        memory = config.source.memory_bytes - (_AHEAD + 1) * _PIECE
        with open_caches(store, config.source, memory=memory) as caches:
            form, arrays = _form(source, store, node, name, config, caches)
            identity = {"source": join(store.url, node.path), "file": name, "size": form.size}
            view = view_of(form, arrays, caches)
            write_view(view, form, target, identity, config, overwrite=overwrite)
            return form.size


Arrays = dict[str, tuple[CachedArray, ArrayMetadata]]


def _form(
    source: str, store: Store, group: Node, name: str, config: TransferConfig, caches: Caches
) -> tuple[GroupForm, Arrays]:
    group_format = find_group_format(name)
    attributes = {} if group.metadata is None else group.metadata.attributes
    wanted = group_format.members(attributes)
    if not isinstance(wanted, Below) and not wanted:
        raise UnsupportedError(name, "the group does not describe an image of several levels")
    arrays: Arrays = {}
    members = []
    groups: dict[str, Mapping[str, Any]] = {}
    hierarchy = hierarchy_of(store, config.source)
    nodes = list(islice(_nodes(hierarchy, group.path, wanted), MOST_MEMBERS + 1))
    others = ["…"] if len(nodes) > MOST_MEMBERS else []
    for path, node in nodes[:MOST_MEMBERS]:
        metadata = node.metadata
        if isinstance(metadata, ArrayMetadata):
            array, read = caches.open(node.path, metadata), metadata.layout.read
            elements = Elements(array, Window.whole(read), FlatConfig())
            data_type = metadata.layout.data_type
            texts = read_texts(elements, data_type, MOST_TEXTS, LARGEST_HEADER)
            if data_type.fixed_size:
                arrays[path] = array, metadata
            elif texts is None:
                others.append(path)
                continue
            around = facts_around(source, store, node, config.source)
            described = describe(metadata, FlatConfig(), node.path, around)
            count_in = partial(count_equal, elements)
            members.append(Member(path, described, read, texts, count_in))
        elif not isinstance(metadata, GroupMetadata):
            others.append(path)
        elif wanted is Below.HIERARCHY:
            groups[path] = metadata.attributes
    own = node_name(store.url, group.path)
    try:
        return group_format.make(Grouped(own, attributes, members, others, groups)), arrays
    except Inexpressible as error:
        raise UnsupportedError(name, str(error)) from error


def _nodes(hierarchy: Hierarchy, group: str, wanted: Wanted) -> Iterator[tuple[str, Node]]:
    """The nodes of a group that a format asks for."""

    def find(path: str) -> Node | None:
        try:
            return hierarchy.reach(join(group, path))
        except NodeNotFound:
            return None

    return find_members(
        wanted,
        lambda path: hierarchy.children(join(group, path) if path else group),
        find,
        lambda node: isinstance(node.metadata, GroupMetadata),
    )


def view_of(form: GroupForm, arrays: Arrays, caches: Caches) -> GatheredView:
    """The bytes of a file of ``arrays``, which have the paths in ``form``."""
    sections: list[Section] = []
    for path, place in form.placed:
        array, metadata = arrays[path]
        read = metadata.layout.read
        if isinstance(place, Tiling):
            sections.append(Boxes(array, read, place))
        else:
            elements = Elements(array, Window.whole(read), FlatConfig())
            stream = StreamView(FlatView(elements), Slabs(elements, caches.cache))
            sections.append(WholeFile.at(place, stream))
    return GatheredView(form.header, sections, form.size, kept=True)


def write_view(
    view: GatheredView,
    form: GroupForm,
    target: str,
    identity: Mapping[str, Any],
    config: TransferConfig,
    *,
    overwrite: bool,
) -> None:
    """Write all bytes of ``view``; see `export_group`. Raises ChunkError, TransferError."""
    boxes = [placed.place for placed in form.placed if isinstance(placed.place, Tiling)]
    gaps = [(each.stride - each.nbytes) // _BLOCK - 1 for each in boxes]
    holes = sum(
        max(0, gap) * _BLOCK * math.prod(each.counts) for gap, each in zip(gaps, boxes, strict=True)
    )
    with output(
        *(target, view.size, identity),
        resume=config.resume,
        overwrite=overwrite,
        holes=holes,
        tile=_PIECE,
    ) as out:
        pending: deque[tuple[int, Future[Data | ChunkError]]] = deque()
        starts = iter(range(out.done * _PIECE, view.size, _PIECE))
        try:
            while True:
                for start in islice(starts, _AHEAD - len(pending)):
                    found: Future[Data | ChunkError] = Future()
                    if (data := view.read_now(start, _PIECE)) is not None:
                        found.set_result(data)
                    else:
                        view.read(start, _PIECE, found.set_result)
                    # Not before: an interruption would wait for a read that nobody began.
                    pending.append((start, found))
                if not pending:
                    break
                start, found = pending[0]
                if isinstance(piece := found.result(), ChunkError):
                    raise piece
                pending.popleft()
                step = _BLOCK if out.seekable else _PIECE
                for at in range(0, len(piece), step):
                    block = memoryview(piece)[at : at + step]
                    if not out.seekable or np.frombuffer(block, np.uint8).any():
                        out.write(start + at, block)
                out.note(start // _PIECE + 1)
                config.progress(min(start + _PIECE, view.size), view.size)
        finally:
            for _, found in pending:
                found.result()
