"""The arrays and boxes of a copy, as values that can be sent to other processes, and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zarrfs.array.making.array_documents import parse_documents
from zarrfs.errors import StoreConflict
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.source import SourceOptions
from zarrfs.library.transfer.tiles import Tile
from zarrfs.views.elements.region import Region


class ArrayCopy(NamedTuple):
    """One array of a copy.

    source, target : the stores, with the paths of the array in them.
    fingerprint : of the source, which must not change.
    documents : of the new array.
    region : of the source.
    """

    source: str
    path: str
    target: str
    target_path: str
    options: SourceOptions
    fingerprint: str
    documents: Mapping[str, bytes]
    region: Region
    verify: bool

    @property
    def metadata(self) -> ArrayMetadata:
        return parse_documents(self.documents)

    def check(self, source: ArrayMetadata) -> None:
        """Raises StoreConflict if the source is not the one that the copy was planned for."""
        if source.fingerprint != self.fingerprint:
            raise StoreConflict(self.path, "was changed by another program while it was copied")


class CopyTask(NamedTuple):
    """Some boxes of an array, with their numbers in the plan."""

    copy: ArrayCopy
    numbers: tuple[int, ...]
    tiles: tuple[Tile, ...]


class Copied(NamedTuple):
    """The result of copying some boxes.

    nbytes : of their elements, decoded.
    objects, stored : destination objects, and those of them that are not fill values alone.
    checksum : the CRC-32C values of all objects that were read back, xored; 0 without any.
    """

    nbytes: int = 0
    objects: int = 0
    stored: int = 0
    checksum: int = 0

    def plus(self, other: Copied) -> Copied:
        nbytes, objects, stored = (a + b for a, b in zip(self[:3], other[:3], strict=True))
        return Copied(nbytes, objects, stored, self.checksum ^ other.checksum)
