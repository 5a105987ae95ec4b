"""``zarrfs.open_group``: the arrays and groups of a group, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from zarrfs.array.node_readers import Node, join
from zarrfs.errors import NodeNotFound, UnsupportedError, UsageError
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.library.open_array import OpenArray, open_array
from zarrfs.library.source import SourceOptions, hierarchy_of, open_source, source_name

_DEFAULTS = SourceOptions()


def open_group(
    source: str | os.PathLike[str],
    *,
    path: str = "",
    writable: bool = False,
    options: SourceOptions = _DEFAULTS,
) -> OpenGroup:
    """A group. ``source``, ``path``, ``options`` are as for `zarrfs.open_array`.

    writable : whether its arrays are opened for writing.

    Raises NodeNotFound where there is nothing, UsageError for an array, UnsupportedError, and other
    `zarrfs.errors.ZarrfsError` as they come.
    """
    return OpenGroup(os.fspath(source), path, writable=writable, options=options)


class OpenGroup(Mapping[str, "OpenArray | OpenGroup"]):
    """A Zarr group: a mapping from names to the arrays and groups in it. Methods block.

    ``group["a/b"]`` is an array or a group further below. Each array is opened by itself, with
    memory and threads of its own, and is to be closed. A group holds nothing open.

    name : path of the group below its source; empty for the source itself.
    attributes : the user's attributes.
    """

    def __init__(self, source: str, path: str, *, writable: bool, options: SourceOptions) -> None:
        """Not to be called: see `open_group`."""
        self._source = source
        self._writable = writable
        self._options = options
        node = self._node(path)
        if isinstance(node.metadata, ArrayMetadata):
            raise UsageError(f"{self._named(node.path)} is an array, not a group")
        if not isinstance(node.metadata, GroupMetadata):
            raise UnsupportedError(self._named(node.path), node.problem or "cannot be served")
        self.name = node.path
        self.attributes: Mapping[str, Any] = node.metadata.attributes

    def __getitem__(self, name: str) -> OpenArray | OpenGroup:
        """Raises KeyError where there is nothing, and other errors as `open_array`."""
        path = join(self.name, name)
        try:
            node = self._node(path)
        except NodeNotFound as error:
            raise KeyError(name) from error
        if isinstance(node.metadata, GroupMetadata):
            return OpenGroup(self._source, path, writable=self._writable, options=self._options)
        return open_array(self._source, path=path, writable=self._writable, options=self._options)

    def __iter__(self) -> Iterator[str]:
        """The names, sorted. Raises StoreListingUnsupported where the store cannot list."""
        with closing(open_source(self._source, self._options)) as store:
            hierarchy = hierarchy_of(store, self._options)
            hierarchy.reach(self.name)
            return iter(hierarchy.children(self.name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self._node(join(self.name, name)) is not None
        except NodeNotFound:
            return False

    def __repr__(self) -> str:
        return f"<zarrfs group {self._named(self.name)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        source = source_name(self._source)
        anew = partial(OpenGroup, writable=self._writable, options=self._options)
        return anew, (source, self.name)

    def _node(self, path: str) -> Node:
        with closing(open_source(self._source, self._options)) as store:
            return hierarchy_of(store, self._options).reach(path)

    def _named(self, path: str) -> str:
        return join(self._source, path) if path else self._source


__all__ = ["OpenGroup", "open_group"]
