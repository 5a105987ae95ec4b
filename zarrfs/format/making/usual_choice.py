"""Defaults of a new array: chunks near 1 MiB, compressed with zstd.

TensorStore's own defaults, uncompressed chunks of 2^20 elements, are in `chunk_choice`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec_chain import inner_chunk_shape
from zarrfs.format.making.chunk_choice import WHOLE, ChunkConstraints
from zarrfs.format.making.new_array import NewArray, needed
from zarrfs.format.registry import parse_data_type

CHUNK_BYTES = 1 << 20
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}

# Approximate bytes of an element without a fixed size.
_VARIABLE_SIZE = 32


def with_usual(array: NewArray) -> NewArray:
    """``array`` with its omitted chunks and codecs chosen.

    If codecs are omitted for Zarr 2, they are Blosc, as in all its implementations. Raises
    ValueError if shape or data type are missing.
    """
    shape, type_json = needed(array)
    codecs = array.codecs
    if codecs is None and array.zarr_format != 2:
        codecs = [ZSTD]
    chunks = array.chunks
    open_axes = not chunks.lengths or 0 in chunks.lengths
    asked = chunks.elements is not None or chunks.aspect_ratio
    in_codecs = array.zarr_format != 2 and inner_chunk_shape(codecs or (), len(shape)) is not None
    regular = array.chunk_grid is None and not in_codecs
    if open_axes and not asked and regular and len(chunks.lengths) in (0, len(shape)):
        data_type = parse_data_type(type_json)
        item = data_type.item_size if data_type.fixed_size else _VARIABLE_SIZE
        chunks = _complete(shape, chunks, max(1, CHUNK_BYTES // max(1, item)))
    return replace(array, chunks=chunks, codecs=codecs, usual=False)


def _complete(shape: Shape, chunks: ChunkConstraints, elements: int) -> ChunkConstraints:
    """Choose lengths for the axes that have none; these lengths yield to those of shards."""
    given = list(chunks.lengths) or [0] * len(shape)
    known = [n if length == WHOLE else length for n, length in zip(shape, given, strict=True)]
    free = [axis for axis, length in enumerate(given) if not length]
    chosen = powers_of_two(
        [shape[axis] for axis in free],
        elements // max(1, math.prod(length for length in known if length)),
    )
    lengths = dict(enumerate(given)) | dict(zip(free, chosen, strict=True))
    return replace(
        chunks,
        lengths=tuple(lengths[axis] for axis in range(len(shape))),
        about=chunks.about | frozenset(free),
    )


def powers_of_two(extents: Sequence[int], elements: int) -> list[int]:
    """Lengths of a chunk of about ``elements`` elements: powers of two, as equal as possible.

    An axis that is shorter than its share is taken whole. So are all axes of an array that is
    hardly larger than one chunk. If the lengths cannot be equal, later axes are longer.
    """
    lengths = [max(1, extent) for extent in extents]
    if 2 * math.prod(lengths) <= 3 * elements:
        return lengths
    free = list(range(len(lengths)))
    left = max(1, elements)
    while True:
        share = 1 << int(math.log2(left) / len(free) + 1e-9)
        short = [axis for axis in free if 4 * lengths[axis] <= 5 * share]
        if not short:
            break
        for axis in short:
            free.remove(axis)
            left = max(1, left // lengths[axis])
    for axis in reversed(free):
        double = 2 * share ** len(free) <= left
        lengths[axis] = min(lengths[axis], 2 * share if double else share)
        left //= 2 if double else 1
    return lengths
