"""Planes of a volume through HDF5 files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench, Comparisons, Row
from benchmarks.measuring.measure import Comparison, Limit

_CACHE = 1 << 30


def _across(bench: Bench) -> Comparisons:
    """`[:, :, k]`, a plane across all rows of the file."""
    for kind in bench.chosen("b", "e"):
        path = bench.arrays.path(kind)
        positions = [bench.scale.volume[2] // 2]
        library = bench.library(
            "tensorstore.read_planes",
            path,
            path=str(path),
            axis=2,
            positions=positions,
            cache=_CACHE,
        )

        def h5py(name: str, path: Path = path, positions: list[int] = positions) -> float:
            with bench.zarrfs(path, "views=chunked.h5,h5") as mounted:
                file = str(mounted.path / name)
                return bench.library(
                    "hdf5.read_planes", path, path=file, axis=2, positions=positions
                )()

        yield Comparison(
            f"({kind})",
            {
                "zarrfs": lambda: h5py("array.chunked.h5"),
                "TensorStore": library,
                "array.h5": lambda: h5py("array.h5"),
            },
            unit="ms",
        )


def _again(bench: Bench) -> Comparisons:
    """Planes of an open file; the pages are the kernel's, or the chunks are decoded."""
    group = bench.directory / "group.zarr"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (group / "data").symlink_to(bench.arrays.path("b"))
    # All in one row of chunks.
    positions = [0, *range(8, 16)]
    with bench.zarrfs(group, "follow_symlinks") as mounted:

        def measure(name: str) -> Callable[[], float]:
            file = str(mounted.path / name)
            return bench.library(
                "hdf5.read_planes_again", None, path=file, axis=0, positions=positions
            )

        yield Comparison(
            "(b)",
            {"zarrfs": measure("group.h5"), "array.h5": measure("data/array.h5")},
            peer="array.h5",
            unit="ms",
        )


ROWS = (
    Row(
        "across",
        "plane `[:, :, k]` by h5py through `array.chunked.h5`, cold",
        "TensorStore in process",
        Limit("at least", 0.5, 0.8),
        _across,
    ),
    Row(
        "again",
        "further planes by h5py through `group.h5`, in one process",
        "the same through `array.h5`",
        Limit("at most", 1.2, 1.0),
        _again,
    ),
)
