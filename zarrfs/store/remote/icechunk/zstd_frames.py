"""The most bytes to which a zstd stream can decode, found without decoding it.

Follows RFC 8878, section 3.1. A block decodes to at most 128 KiB, whatever its frame says.
"""

from __future__ import annotations

from zarrfs.bounds import OutOfBoundsError

_FRAME, _SKIPPABLE, _SKIPPABLE_MASK = 0xFD2FB528, 0x184D2A50, 0xFFFFFFF0
_LARGEST_BLOCK = 128 << 10
_DICTIONARY_ID = (0, 1, 2, 4)
_CONTENT_SIZE = (0, 2, 4, 8)
_RLE = 1


def most_decoded(data: memoryview, most: int) -> int:
    """An upper bound of the decoded size in bytes; some number above ``most`` if it is larger.

    A stream that breaks off counts up to there. Raises `OutOfBoundsError` for anything else than
    frames of this format, because a decoder may know older formats.
    """
    at = total = 0
    while at < len(data) and total <= most:
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic & _SKIPPABLE_MASK == _SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != _FRAME:
            raise OutOfBoundsError("is not compressed with zstd alone")
        described = data[at + 4] if at + 4 < len(data) else 0
        single_segment, checksum = described >> 5 & 1, described >> 2 & 1
        content_size = _CONTENT_SIZE[described >> 6] or single_segment
        at += 5 + (not single_segment) + _DICTIONARY_ID[described & 3] + content_size
        last = False
        while not last and at < len(data) and total <= most:
            block = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            total += _LARGEST_BLOCK
            at += 3 + (1 if kind == _RLE else size)
        at += 4 * checksum
    return total
