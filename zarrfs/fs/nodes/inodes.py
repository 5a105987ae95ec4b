"""Inode numbers: computed from a node's path and a number within it, and back.

Nothing is stored per file, so that listing a billion chunks takes no memory. Each
group and array has a slot, found from a hash of its path, so that its inodes are
the same in every mount of the source unless two paths collide.
"""

from __future__ import annotations

from hashlib import blake2b

ROOT_INODE = 1

_LOCAL_BITS = 40
_SLOTS = 1 << 22
# Arrays of very many chunks have few slots with more room each, marked by the top bit.
_LARGE = 1 << 63
_LARGE_LOCAL_BITS = 56
_LARGE_SLOTS = 1 << 6
_MOST_INODES = 1 << 62


class InodeSpace:
    """Slots of one mount. A slot once given stays with its path."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        self._root_size = 0

    def claim(self, path: str, size: int) -> int | None:
        """The first of at least ``size`` inodes for the node ``path``; None if they do not fit.

        The root node's first inode is `ROOT_INODE`. ``size`` must be the same each time.
        """
        if (base := self._slots.get(path)) is not None:
            return base
        if not path:
            # An array at the root is alone, so it may have as many as there are numbers.
            if size > _MOST_INODES:
                return None
            self._root_size = size
            self._slots[path] = ROOT_INODE
            return ROOT_INODE
        if size <= 1 << _LOCAL_BITS:
            slots, bits, mark = _SLOTS, _LOCAL_BITS, 0
        elif size <= 1 << _LARGE_LOCAL_BITS:
            slots, bits, mark = _LARGE_SLOTS, _LARGE_LOCAL_BITS, _LARGE
        else:
            return None
        start = _hash(path) % slots
        for probe in range(slots):
            slot = (start + probe) % slots
            base = (mark | slot << bits) + ROOT_INODE
            # Slot 0 of the small ones is the root's.
            if base not in self._paths and base != ROOT_INODE:
                self._slots[path] = base
                self._paths[base] = path
                return base
        return None

    def unknown(self, path: str) -> int:
        """An inode that stands for nothing, and differs from those of other paths.

        For a name in a listing of which nothing but the name is known.
        """
        return _MOST_INODES | (_hash(path) % _MOST_INODES)

    def base(self, path: str) -> int:
        """The first inode of a node that has a slot."""
        return self._slots[path]

    def grow(self, path: str, size: int) -> bool:
        """Whether ``size`` inodes fit where ``path`` has its slot; they then belong to it."""
        base = self._slots[path]
        if not path:
            if size > _MOST_INODES:
                return False
            self._root_size = max(self._root_size, size)
            return True
        return size <= 1 << (_LARGE_LOCAL_BITS if base - ROOT_INODE & _LARGE else _LOCAL_BITS)

    def find(self, inode: int) -> tuple[str, int] | None:
        """Path of the node an inode belongs to, and its number within it."""
        number = inode - ROOT_INODE
        if 0 <= number < self._root_size:
            return "", number
        bits = _LARGE_LOCAL_BITS if number & _LARGE else _LOCAL_BITS
        local = number & ((1 << bits) - 1)
        path = self._paths.get(inode - local)
        return None if path is None else (path, local)


def _hash(path: str) -> int:
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
