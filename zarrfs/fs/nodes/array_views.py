"""Files of one array in other formats: which there are, and the bytes around their elements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from zarrfs import bounds
from zarrfs.array.node_readers import Node
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.nodes.nodes import Local
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import Region
from zarrfs.views.facts.facts import Around
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.names import ARRAY
from zarrfs.views.headers.registry import FORMATS, chosen, find_format

log = logging.getLogger(__name__)

_GROWING = "npy"
"""The only file with a header that an array grows through."""

# Bytes of elements beyond which a file with a header may be larger than a file can be. The kernel
# does not even list that.
_MAY_NOT_FIT = bounds.LARGEST_LENGTH >> 8


class _Known(NamedTuple):
    """The views of one node, found once.

    plans : for the number of each file.
    frames : for each file that was asked for, the bytes that are none of elements.
    """

    node: Node
    names: dict[str, int]
    plans: dict[int, Plan]
    frames: dict[int, int]


@dataclass(slots=True, eq=False, repr=False)
class ArrayViews:
    """Made of a node when they are first asked for; headers are not kept.

    Any thread may call; what two threads find out at once is the same.

    views : as `chosen` takes them.
    around : the attributes beside those of the array.
    region : the box of the array that the files hold; None: all of it.
    stem : of the names of the files.
    grows : whether the array may get other shapes while its files are open.
    """

    views: Collection[str]
    layout: FlatConfig
    around: Callable[[], Around]
    region: Region | None
    stem: str
    grows: bool
    _known: _Known | None = None

    def names(self, node: Node) -> Iterator[tuple[str, int]]:
        """Name and number of each file."""
        yield from self._of(node).names.items()

    def known_numbers(self) -> Iterable[int]:
        """The numbers of the files; none if nobody has asked for them."""
        return () if self._known is None else self._known.names.values()

    def has(self, node: Node, local: int) -> bool:
        first_to_last = Local.FIRST_VIEW <= local < Local.FIRST_TREE
        return first_to_last and local in self._of(node).plans

    def is_header(self, local: int) -> bool:
        """Whether a file is a header alone."""
        rows = list(FORMATS.values())
        number = local - Local.FIRST_VIEW
        return number < len(rows) and rows[number].beside

    def measured(self, node: Node, local: int) -> bool:
        """Whether `frame_size` is known without making the header."""
        return local in self._of(node).frames

    def frame_size(self, node: Node, local: int) -> int:
        """Bytes that are none of elements; 0 where there is no such file."""
        known = self._of(node)
        if local not in known.plans:
            return 0
        return known.frames[local] if local in known.frames else _measure(known, local)

    def form(self, node: Node, local: int) -> Form:
        return self._of(node).plans[local]()

    def described(self, node: Node, layout: FlatConfig | None = None) -> Described:
        """The description of an array for headers; None: its elements lie as in ``array.bin``."""
        assert isinstance(node.metadata, ArrayMetadata)
        layout = layout or self.layout
        found = describe(node.metadata, layout, node.path, self.around(), self.region)
        return replace(found, data_file=f"{self.stem}.bin")

    def _of(self, node: Node) -> _Known:
        known = self._known
        if known is None or known.node is not node:
            known = self._known = self._look_at(node)
        return known

    def _look_at(self, node: Node) -> _Known:
        known = _Known(node, {}, {}, {})
        if not isinstance(node.metadata, ArrayMetadata):
            return known
        array = self.described(node)
        for number, name in chosen(self.views, array):
            local = Local.FIRST_VIEW + number
            if self.grows and name != _GROWING and not self.is_header(local):
                continue
            try:
                plan = find_format(name)(array)
            except Inexpressible:
                continue
            except Exception as error:  # noqa: BLE001 - other packages bring formats, too
                log.warning("/%s is not shown as %s: %s", node.path, name, error)
                continue
            file = f"{self.stem}.{name}"
            if file in node.documents:  # formats of other packages have any extension
                file = f"{ARRAY}.{name}"
            known.names[file] = local
            known.plans[local] = plan
            if name == _GROWING:
                _measure(known, local)
            if (
                array.nbytes > _MAY_NOT_FIT
                and not self.is_header(local)
                and array.nbytes + _measure(known, local) > bounds.LARGEST_LENGTH
            ):
                del known.names[file], known.plans[local], known.frames[local]
        return known


def _measure(known: _Known, local: int) -> int:
    form = known.plans[local]()
    size = known.frames[local] = form.frame
    return size
