"""Groups and arrays of a store: which there are, and what their metadata say."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from zarrfs.errors import MetadataError, NodeNotFound, StoreError
from zarrfs.format.metadata.node import GroupMetadata, NodeMetadata
from zarrfs.format.metadata.v3 import DOCUMENT, load_json, parse_node
from zarrfs.store.base import Store

# Larger than any document seen in practice, consolidated ones of many thousand arrays
# included; small enough that parsing one cannot exhaust memory.
LARGEST_DOCUMENT = 64 << 20
_LISTING_THREADS = 16


@dataclass(frozen=True, slots=True)
class Node:
    """An array or a group.

    path : below the store's root; empty for the root.
    metadata : None where it cannot be served; ``problem`` then says why.
    documents : names of its stored metadata documents, beside its chunks.
    mtime_ns : of its metadata, where the store tells.
    """

    path: str
    metadata: NodeMetadata | None
    problem: str | None
    documents: tuple[str, ...]
    mtime_ns: int | None


class Hierarchy:
    """The nodes of a store. Methods block; safe for any number of threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._consolidated: dict[str, Mapping[str, Any]] = {}

    def root(self) -> Node:
        """The source itself. Raises NodeNotFound where there is no Zarr array or group."""
        node = self.node("")
        if node is None:
            raise NodeNotFound(f"{self._store.url}: no Zarr array or group here (no {DOCUMENT})")
        return node

    def node(self, path: str) -> Node | None:
        """The node at ``path``; None if there is none.

        Below a group with consolidated metadata those decide, and the store is not
        asked; groups must therefore be opened from the root down.
        """
        if (found := self._find_consolidated(path)) is not None:
            base, children = found
            return self._consolidated_node(path, path.removeprefix(base).lstrip("/"), children)
        key = _join(path, DOCUMENT)
        blob = self._store.get(key, limit=LARGEST_DOCUMENT)
        if blob is None:
            return None
        metadata: NodeMetadata | None = None
        problem = None
        try:
            metadata = parse_node(load_json(bytes(blob.data), key), key)
        except MetadataError as error:
            problem = str(error)
        if isinstance(metadata, GroupMetadata) and metadata.children is not None:
            self._consolidated[path] = metadata.children
        return Node(path, metadata, problem, (DOCUMENT,), blob.info.mtime_ns)

    def children(self, path: str) -> list[str]:
        """Names of the nodes directly below the group ``path``, sorted.

        Raises StoreListingUnsupported where neither consolidated metadata nor the
        store can tell.
        """
        base = self._consolidated_base(path)
        if base is not None:
            prefix = path.removeprefix(base).lstrip("/")
            prefix = f"{prefix}/" if prefix else ""
            names = (key.removeprefix(prefix) for key in self._consolidated[base])
            below = (
                name.partition("/")[0]
                for name, key in zip(names, self._consolidated[base], strict=True)
                if key.startswith(prefix) and name
            )
            return sorted({name for name in below if _is_name(name)})
        names_below = [
            name.rstrip("/") for name in self._store.list_dir(path) if name.endswith("/")
        ]
        if self._store.cheap_stat:
            return sorted(name for name in names_below if self._exists(_join(path, name)))
        with ThreadPoolExecutor(_LISTING_THREADS) as pool:
            exists = pool.map(lambda name: self._exists(_join(path, name)), names_below)
            return sorted(name for name, there in zip(names_below, exists, strict=True) if there)

    def _exists(self, path: str) -> bool:
        try:
            return self._store.info(_join(path, DOCUMENT)) is not None
        except StoreError:
            # It is shown, and opening it will say what is wrong.
            return True

    def _consolidated_base(self, path: str) -> str | None:
        """The nearest group at or above ``path`` that has consolidated metadata."""
        while True:
            if path in self._consolidated:
                return path
            if not path:
                return None
            path = path.rpartition("/")[0]

    def _find_consolidated(self, path: str) -> tuple[str, Mapping[str, Any]] | None:
        if not path:
            return None
        base = self._consolidated_base(path.rpartition("/")[0])
        return None if base is None else (base, self._consolidated[base])

    def _consolidated_node(
        self, path: str, relative: str, children: Mapping[str, Any]
    ) -> Node | None:
        document = _join(path, DOCUMENT)
        if relative not in children:
            if any(key.startswith(f"{relative}/") for key in children):
                # A group that only its children tell of.
                return Node(path, GroupMetadata(3, {}, None), None, (), None)
            return None
        try:
            metadata = parse_node(children[relative], document)
        except MetadataError as error:
            return Node(path, None, str(error), (DOCUMENT,), None)
        return Node(path, metadata, None, (DOCUMENT,), None)


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and "\0" not in name


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
