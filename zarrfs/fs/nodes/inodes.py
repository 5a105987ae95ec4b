"""Inode numbers: computed from a node's path and a number within it, and back.

Nothing is stored per file, so that listing a billion chunks takes no memory. Each
group and array has a slot, found from a hash of its path, so that its inodes are
the same in every mount of the source unless two paths collide.

A slot stays with its path while the node is in memory, and as long as the kernel knows any of its
inodes: until it has forgotten each as often as it was given it. That is some 300 bytes a node.
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
    """Slots of one mount. The caller of each method sees to it that no other thread calls one.

    root : the path of the node that is the mount's root.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._slots: dict[str, int] = {}
        self._paths: dict[int, str] = {}
        # For the first inode of each node, how often the kernel was given one of its inodes.
        self._given: dict[int, int] = {}
        self._root_size = 0

    def __len__(self) -> int:
        """Number of nodes that have a slot."""
        return len(self._slots)

    def claim(self, path: str, size: int) -> int | None:
        """The first of at least ``size`` inodes for the node ``path``; None if they do not fit.

        The root node's first inode is `ROOT_INODE`. ``size`` must be the same each time.
        """
        if (base := self._slots.get(path)) is not None:
            return base
        if path == self._root:
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

    def listed(self, path: str) -> int:
        """For a name in a listing of which nothing but the name is known.

        The first inode of the node, or if no slot is left, one that stands for nothing.
        """
        if (base := self.claim(path, 1)) is not None:
            return base
        return _MOST_INODES | (_hash(path) % _MOST_INODES)

    def base(self, path: str) -> int:
        """The first inode of a node that has a slot."""
        return self._slots[path]

    def give(self, inode: int) -> None:
        """The kernel is given an inode, and may ask for it until it has forgotten it."""
        if (base := self._base_of(inode)) is not None:
            self._given[base] = self._given.get(base, 0) + 1

    def take_back(self, inode: int, times: int) -> str | None:
        """The kernel has forgotten an inode, given to it so often.

        Returns the node that it belongs to, if the kernel knows none of that any more.
        """
        if (base := self._base_of(inode)) is None:
            return None
        if (left := self._given.get(base, 0) - times) > 0:
            self._given[base] = left
            return None
        self._given.pop(base, None)
        return self._paths[base]

    def given(self, path: str) -> bool:
        """Whether the kernel knows any inode of a node that has a slot."""
        return path == self._root or self._slots[path] in self._given

    def release(self, path: str) -> None:
        """Let go of a node's slot, if the kernel knows none of its inodes."""
        if path in self._slots and not self.given(path):
            del self._paths[self._slots.pop(path)]

    def _base_of(self, inode: int) -> int | None:
        """The first inode of a node; None for the root and for what is no node."""
        number = inode - ROOT_INODE
        if 0 <= number < self._root_size:
            return None
        bits = _LARGE_LOCAL_BITS if number & _LARGE else _LOCAL_BITS
        base = inode - (number & ((1 << bits) - 1))
        return base if base in self._paths else None

    def grow(self, path: str, size: int) -> bool:
        """Whether ``size`` inodes fit where ``path`` has its slot; they then belong to it."""
        base = self._slots[path]
        if path == self._root:
            if size > _MOST_INODES:
                return False
            self._root_size = max(self._root_size, size)
            return True
        return size <= 1 << (_LARGE_LOCAL_BITS if base - ROOT_INODE & _LARGE else _LOCAL_BITS)

    def find(self, inode: int) -> tuple[str, int] | None:
        """Path of the node an inode belongs to, and its number within it."""
        number = inode - ROOT_INODE
        if 0 <= number < self._root_size:
            return self._root, number
        base = self._base_of(inode)
        return None if base is None else (self._paths[base], inode - base)


def _hash(path: str) -> int:
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
