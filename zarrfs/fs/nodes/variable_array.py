"""Arrays of elements without a fixed size: ``array.jsonl``, ``array.offsets``, ``array.values``."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

from zarrfs.array.node_readers import Node
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.fs.nodes.nodes import Local, MountedArray
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.headers.form import LARGEST_HEADER
from zarrfs.views.headers.hdf5.file import MOST_TEXTS
from zarrfs.views.variable import (
    ConcatenatedView,
    Measures,
    OffsetsView,
    measure,
    offsets_size,
    read_texts,
    to_line,
    to_value,
)
from zarrfs.views.view import WritableView

_EXTENSIONS = {
    "jsonl": Local.JSON_LINES,
    "offsets": Local.OFFSETS,
    "values": Local.VALUES,
}


class VariableArray(MountedArray):
    """An array without flat views. How large its files are becomes known when asked for.

    stem : of the names of its files.
    """

    def __init__(
        self, node: Node, array: CachedArray, mtime_ns: int, config: FlatConfig, stem: str
    ) -> None:
        name = array.array.layout.data_type.name
        note = (
            f"elements of type {name} have no fixed size, so there is no {stem}.bin: "
            f"{stem}.jsonl has one JSON value a line, {stem}.values the bytes of all "
            f"elements, {stem}.offsets where each begins"
        )
        note = note if node.problem is None else f"{note}\n{node.problem}"
        super().__init__(node, array, note, mtime_ns)
        window = Window.whole(array.array.layout.read)
        self._elements = Elements(array, window, FlatConfig())
        self._byteorder = config.byteorder
        self._stem = stem
        self._measures: tuple[int, Measures] | None = None
        self._measuring = Lock()

    def texts(self) -> list[bytes] | None:
        """The elements for a file of a group; None if they are no texts, or too many. Blocks."""
        return read_texts(self._elements, self.layout.data_type, MOST_TEXTS, LARGEST_HEADER)

    def names(self) -> Iterator[tuple[str, int]]:
        for extension, local in _EXTENSIONS.items():
            yield f"{self._stem}.{extension}", local
        yield from super().names()

    def is_data(self, local: int) -> bool:
        return local in (Local.JSON_LINES, Local.OFFSETS, Local.VALUES)

    def size_blocks(self, local: int) -> bool:
        return local != Local.OFFSETS and self._known() is None

    def view_blocks(self, local: int) -> bool:
        return self._known() is None

    def data_size(self, local: int) -> int:
        if local == Local.OFFSETS:
            return offsets_size(self._elements)
        measures = self._measure()
        return (measures.lines if local == Local.JSON_LINES else measures.values)[-1]

    def view(self, local: int) -> WritableView:
        """Raises ChunkError where the elements cannot be measured."""
        measures = self._measure()
        if local == Local.OFFSETS:
            return OffsetsView(self._elements, measures.values, self._byteorder)
        if local == Local.JSON_LINES:
            return ConcatenatedView(self._elements, measures.lines, to_line)
        return ConcatenatedView(self._elements, measures.values, to_value)

    def _known(self) -> Measures | None:
        if self._measures is None or self._measures[0] != self.array.freshness.epoch:
            return None
        return self._measures[1]

    def _measure(self) -> Measures:
        with self._measuring:
            measures = self._known()
            if measures is None:
                freshness = self.array.freshness
                epoch, check = freshness.epoch, freshness.checks
                measures = measure(self._elements)
                if check == freshness.checks:
                    self._measures = epoch, measures
            return measures
