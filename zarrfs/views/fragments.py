"""Parts of elements that were written without the rest of them."""

from __future__ import annotations

from collections.abc import Iterator

from zarrfs.views.view import Data


class Fragments:
    """Written bytes of elements of ``item_size`` bytes, of which some are still to come.

    Programs write in blocks that need not end where an element does. The next block mostly
    brings the rest, so the element need not be read in between.
    """

    def __init__(self, item_size: int) -> None:
        self._item_size = item_size
        self._parts: dict[int, tuple[bytearray, bytearray]] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, element: int, start: int, data: Data) -> bytes | None:
        """Bytes from ``start`` on of an element; the whole element if all are known now.

        It stays here until it is forgotten.
        """
        value, known = self._parts.setdefault(
            element, (bytearray(self._item_size), bytearray(self._item_size))
        )
        value[start : start + len(data)] = data
        known[start : start + len(data)] = b"\1" * len(data)
        return None if 0 in known else bytes(value)

    def forget(self, first: int, last: int) -> None:
        """Elements ``first`` to ``last`` (exclusive) have been written whole since."""
        for element in [e for e in self._parts if first <= e < last]:
            del self._parts[element]

    def touches(self, first: int, last: int) -> bool:
        """Whether any of these elements is here."""
        return any(first <= element < last for element in self._parts)

    def over(self, old: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
        """The elements, with the bytes that were not written taken from ``old``."""
        for element, (value, known) in self._parts.items():
            merged = bytearray(old[element])
            for i, is_known in enumerate(known):
                if is_known:
                    merged[i] = value[i]
            yield element, bytes(merged)

    def clear(self) -> None:
        self._parts.clear()

    @property
    def elements(self) -> list[int]:
        return list(self._parts)
