"""How members of metadata documents become errors, and an array's layout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from zarrfs import bounds
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.chunk_layout import ChunkLayout, plan_layout
from zarrfs.format.data_type import DataType
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.unserved import UnservedError

Damage = list[str]
"""Why documents, or members of them, that a node can do without count as missing."""


def plain(value: Any) -> Any:
    """Convert read-only or hashable forms to JSON of lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@contextmanager
def noting(damage: Damage | None) -> Iterator[None]:
    """Adds a MetadataError to ``damage`` in place of raising it; None: raises it."""
    try:
        yield
    except MetadataError as error:
        if damage is None:
            raise
        damage.append(str(error))


@contextmanager
def reading(document: str, member: str) -> Iterator[None]:
    """Convert exceptions about a member of a document into errors that name both."""
    try:
        yield
    except UnservedError as error:
        raise UnsupportedError(document, bounds.shown(error)) from error
    except bounds.OutOfBoundsError as error:
        raise UnsupportedError(document, f"{member}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # codecs and data types of other packages may raise anything
        raise MetadataError(document, f"{member}: {bounds.shown(error)}") from error


def layout_of(
    document: str, grid: ChunkGrid, pipeline: CodecPipeline, data_type: DataType, fill: bytes
) -> ChunkLayout:
    """The layout of an array.

    Raises UnsupportedError for an array that no file can hold, MetadataError if codecs do not fit.
    """
    with reading(document, "shape"):
        bounds.check_lengths(grid.shape, "shape")
        bounds.check_lengths(grid.largest_chunk, "chunks")
    axes = len(grid.axes)
    if axes > bounds.MOST_AXES:
        raise UnsupportedError(document, f"has {axes} axes, at most {bounds.MOST_AXES} are served")
    if math.prod(grid.shape) * data_type.item_size > bounds.LARGEST_LENGTH:
        raise UnsupportedError(document, "is larger than a file can be (8 EiB)")
    with reading(document, "codecs"):
        return plan_layout(grid, pipeline, data_type, fill)
