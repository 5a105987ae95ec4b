"""How arrays were encoded when an overlay got their first change.

Chunks say nothing of that, so an array that another program makes anew in the store would give
those of the overlay another meaning. A document in the overlay would give one to the store's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from zarrfs.errors import StoreChanged, StoreConflict, StoreError
from zarrfs.store.base import ANY, Store

_KEPT = "arrays/"
_LARGEST = 64 << 20
_MOST_KNOWN = 1 << 14


class MetadataComparison(NamedTuple):
    """Knows the metadata documents of arrays, which a store does not.

    names : that they have.
    is_array : whether one describes an array.
    alike : whether chunks of two arrays are encoded in the same way.
    larger : whether the second of two arrays has elements behind an end of the first.
    cut : the document of the first of two arrays, with no elements behind an end of the second.
    """

    names: Collection[str]
    is_array: Callable[[str, bytes], bool]
    alike: Callable[[str, bytes, bytes], bool]
    larger: Callable[[str, bytes, bytes], bool]
    cut: Callable[[str, bytes, bytes], bytes]


class OverlayArrays:
    """
    holds : whether the overlay has changes below a node.
    """

    def __init__(
        self,
        inner: Store,
        upper: Store,
        documents: MetadataComparison,
        holds: Callable[[str], bool],
    ) -> None:
        self._inner = inner
        self._upper = upper
        self._documents = documents
        self._holds = holds
        # Directories above the first array of a path, which are asked about once.
        self._above: set[str] = set()
        # Arrays that are larger in the store now than in the documents that are kept.
        self._larger: set[str] = set()

    def note(self, key: str) -> None:
        """Before the first change of a chunk or document: keep the document of its array."""
        for node in _nodes_above(key):
            if node in self._above:
                continue
            if self.has(node):
                return
            for name in self._documents.names:
                found = self._inner.get(_join(node, name), limit=_LARGEST)
                if found is not None and self._documents.is_array(name, bytes(found.data)):
                    kept = _KEPT + _join(node, name)
                    with suppress(StoreConflict):  # of another mount, which noted it, too
                        self._upper.put(kept, [found.data], expected=None)
                    return
            if len(self._above) < _MOST_KNOWN:
                self._above.add(node)

    def has(self, node: str) -> bool:
        """Whether the document of the array at a node is kept."""
        keys = (_KEPT + _join(node, name) for name in self._documents.names)
        return any(self._upper.info(key) is not None for key in keys)

    def check(self, node: str) -> None:
        """Raises StoreChanged where changes in the overlay do not fit the store's own array."""
        for name, kept in self._kept(node):
            key = _join(node, name)
            now = self._inner.get(key, limit=_LARGEST)
            if now is not None and self._documents.alike(name, kept, bytes(now.data)):
                self._compare(name, node, kept, bytes(now.data))
                continue
            if not self._documents.is_array(name, kept) or not self._holds(node):
                # A damaged one says nothing, or all of the changes are in the store since.
                self._upper.delete(_KEPT + key, expected=ANY)
                continue
            what = "deleted the array" if now is None else "changed how the array is encoded"
            where = self._upper.local_path
            raise StoreChanged(key, f"another program has {what}, of which {where} holds changes")

    def _compare(self, name: str, node: str, kept: bytes, now: bytes) -> None:
        """Learn whether the array is larger than at the time of any change."""
        if self._documents.larger(name, now, kept):
            # Changes from now on end where the array ends now.
            kept = self._documents.cut(name, kept, now)
            with suppress(StoreError):  # then the next change cannot be kept, either
                self._upper.put(_KEPT + _join(node, name), [kept], expected=ANY)
        larger = self._documents.larger(name, kept, now)
        (self._larger.add if larger else self._larger.discard)(node)

    def may_end_before(self, key: str) -> bool:
        """Whether an object may be of an array that has become larger in the store."""
        return bool(self._larger) and any(node in self._larger for node in _nodes_above(key))

    def check_chunk(self, key: str, checked: dict[str, str | None]) -> None:
        """As `check`, of the array of a chunk.

        checked : the outcomes of the nodes that have been checked.
        """
        for node in _nodes_above(key):
            if node not in checked:
                checked[node] = None
                try:
                    self.check(node)
                except StoreChanged as error:
                    checked[node] = error.reason
            if (reason := checked[node]) is not None:
                raise StoreChanged(key, reason)

    def is_array(self, document: str, data: bytes) -> bool:
        name = document.rpartition("/")[2]
        return name in self._documents.names and self._documents.is_array(name, data)

    def is_own(self, key: str) -> bool:
        """Whether a key is that of a document that an array may have."""
        return key.rpartition("/")[2] in self._documents.names

    def _kept(self, node: str) -> Iterator[tuple[str, bytes]]:
        for name in self._documents.names:
            found = self._upper.get(_KEPT + _join(node, name), limit=_LARGEST)
            if found is not None:
                yield name, bytes(found.data)


def _nodes_above(key: str) -> Iterator[str]:
    """From the root down."""
    names = key.split("/")
    return ("/".join(names[:count]) for count in range(len(names)))


def _join(node: str, name: str) -> str:
    return f"{node}/{name}" if node else name
