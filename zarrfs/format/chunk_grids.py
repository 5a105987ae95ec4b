"""Chunk grids by name, made from their configuration in v3 metadata.

``regular`` is in the core specification, ``rectilinear`` in zarr-extensions
(https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear).
``rectangular`` is the draft that preceded it (https://zarr.dev/zeps/draft/ZEP0003.html).
``zarrs.regular_bounded`` is a regular grid whose last chunks end with the array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zarrfs.format.chunk_grid import ChunkGrid, GridAxis, RegularAxis, RunsAxis, Shape


def regular(shape: Shape, configuration: Mapping[str, Any]) -> ChunkGrid:
    return ChunkGrid([RegularAxis(s, c) for s, c in _axes(shape, configuration, "chunk_shape")])


def regular_bounded(shape: Shape, configuration: Mapping[str, Any]) -> ChunkGrid:
    axes = _axes(shape, configuration, "chunk_shape")
    return ChunkGrid([_bounded(extent, chunk) for extent, chunk in axes])


def _bounded(extent: int, chunk: int) -> GridAxis:
    whole, rest = divmod(extent, chunk)
    return RunsAxis(
        extent, [(length, n) for length, n in ((chunk, whole), (rest, 1)) if n * length]
    )


def rectilinear(shape: Shape, configuration: Mapping[str, Any]) -> ChunkGrid:
    """Each axis: one length, or a list of lengths and of runs ``[length, repeats]``."""
    if configuration.get("kind") != "inline" or set(configuration) != {"kind", "chunk_shapes"}:
        raise ValueError("expected kind inline and chunk_shapes")
    return _lists(shape, configuration["chunk_shapes"], runs=True)


def rectangular(shape: Shape, configuration: Mapping[str, Any]) -> ChunkGrid:
    """Each axis: one length, or a list of lengths."""
    if set(configuration) != {"chunk_shape"}:
        raise ValueError("expected chunk_shape")
    return _lists(shape, configuration["chunk_shape"], runs=False)


def _axes(shape: Shape, configuration: Mapping[str, Any], member: str) -> list[tuple[int, int]]:
    lengths = configuration.get(member)
    if not isinstance(lengths, list | tuple) or len(lengths) != len(shape):
        raise ValueError(f"expected a {member} of {len(shape)} axes")
    return [(extent, _positive(length)) for extent, length in zip(shape, lengths, strict=True)]


def _lists(shape: Shape, axes: Any, *, runs: bool) -> ChunkGrid:
    if not isinstance(axes, list | tuple) or len(axes) != len(shape):
        raise ValueError(f"expected chunk lengths of {len(shape)} axes")
    return ChunkGrid([_list(extent, axis, runs) for extent, axis in zip(shape, axes, strict=True)])


def _list(extent: int, axis: Any, runs: bool) -> GridAxis:
    if not isinstance(axis, list | tuple):
        return RegularAxis(extent, _positive(axis))
    return RunsAxis(extent, [_run(entry, runs) for entry in axis])


def _run(entry: Any, runs: bool) -> tuple[int, int]:
    if runs and isinstance(entry, list | tuple):
        if len(entry) != 2:
            raise ValueError(f"{entry!r} is not a run of a length and its repeats")
        return _positive(entry[0]), _positive(entry[1])
    return _positive(entry), 1


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a valid chunk length")
    return value


CHUNK_GRIDS: dict[str, Callable[[Shape, Mapping[str, Any]], ChunkGrid]] = {
    "regular": regular,
    "rectilinear": rectilinear,
    "rectangular": rectangular,
    "zarrs.regular_bounded": regular_bounded,
}
"""Functions of the array's shape and the configuration; they raise ValueError."""
