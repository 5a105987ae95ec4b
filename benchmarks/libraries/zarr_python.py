"""zarr-python, and zarrs as its codec pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import zarr


def read_all(path: str, *, rust: bool = False) -> Callable[[], None]:
    """The whole array into memory; ``rust`` by zarrs."""
    if rust:
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def run() -> None:
        _open(path)[...]

    return run


def read_chunks(path: str, chunks: list[list[int]]) -> Callable[[], None]:
    """Chunks by their indices, one after the other."""
    array = _open(path)
    boxes = [
        tuple(slice(i * n, (i + 1) * n) for i, n in zip(indices, array.chunks, strict=True))
        for indices in chunks
    ]

    def run() -> None:
        for box in boxes:
            array[box]

    return run


def _open(path: str) -> Any:
    return zarr.open_array(path, mode="r")
