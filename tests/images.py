"""Images of several levels: OME-Zarr, and pyramids of the conventions for maps."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

_TYPES = {"t": "time", "c": "channel"}
_UNITS = {a: {"unit": "second" if a == "t" else "micrometer"} for a in "tzyx"}
_COLOURS = ("FF0000", "00FF00", "0000FF", "FFFFFF")
_CONVENTIONS = {
    "multiscales": "d35379db-88df-4056-af3a-620245f8e347",
    "proj:": "f17cb550-5864-4468-aeb7-f3180cfb622f",
    "spatial:": "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4",
}


def noise(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Elements of which no two neighbours are alike."""
    numbers = np.arange(np.prod(shape), dtype="u8") * 2654435761 % 65521
    return (
        (numbers % (200 if np.dtype(dtype).itemsize == 1 else 65521)).astype(dtype).reshape(shape)
    )


def make_image(
    path: Path,
    axes: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str = "u2",
    *,
    levels: int = 3,
    halved: str = "yx",
    version: str = "0.5",
    attributes: dict[str, Any] | None = None,
) -> list[NDArray[Any]]:
    """Writes an OME-Zarr image and returns its levels.

    halved : the axes that have half as many elements in each level.
    """
    group = zarr.create_group(path, zarr_format=3 if version == "0.5" else 2)
    found = []
    datasets = []
    for level in range(levels):
        data = noise(shape, dtype)
        names: dict[str, Any] = {"dimension_names": list(axes)} if version == "0.5" else {}
        group.create_array(str(level), data=data, chunks=chunks, fill_value=7, **names)
        found.append(data)
        scale = [0.5 * 2**level if axis in halved else 1.0 for axis in axes]
        steps = [{"type": "scale", "scale": scale}]
        datasets.append({"path": str(level), "coordinateTransformations": steps})
        shape = tuple(-(-n // 2) if a in halved else n for n, a in zip(shape, axes, strict=True))
    said: dict[str, Any] = {"multiscales": [{
        "version": version,
        "axes": [
            {"name": a, "type": _TYPES.get(a, "space"), **_UNITS.get(a, {})} for a in axes
        ],
        "datasets": datasets,
    }]}  # fmt: skip
    if "c" in axes:
        count = found[0].shape[axes.index("c")]
        said["omero"] = {"channels": [
            {"label": f"<dye {i}> µ", "color": _COLOURS[i % 4]} for i in range(count)
        ]}  # fmt: skip
    group.attrs.update({"ome": {"version": "0.5", **said}} if version == "0.5" else said)
    group.attrs.update(attributes or {})
    return found


def make_map(
    path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str = "u2",
    *,
    levels: int = 3,
    variable: str = "",
    missing: int | None = None,
) -> list[NDArray[Any]]:
    """Writes a pyramid of the conventions for maps and returns its levels.

    variable : the name of the array in the group of each level; empty: the levels are arrays.
    """
    group = zarr.create_group(path)
    names = [f"r{10 * 2**level}m" for level in range(levels)]
    found = []
    layout = []
    for level, name in enumerate(names):
        data = noise(shape, dtype)
        parent = group.create_group(name) if variable else group
        parent.create_array(
            variable or name, data=data, chunks=chunks,
            dimension_names=["band", "y", "x"][-len(shape) :],
            attributes={} if missing is None else {"_FillValue": missing},
        )  # fmt: skip
        found.append(data)
        size = 10.0 * 2**level
        layout.append({"asset": name, "spatial:transform": [size, 0, 5e5, 0, -size, 5e6]})
        shape = (*shape[:-2], -(-shape[-2] // 2), -(-shape[-1] // 2))
    for before, entry in pairwise(layout):
        entry["derived_from"] = before["asset"]
    group.attrs.update({
        "zarr_conventions": [{"uuid": uuid, "name": name} for name, uuid in _CONVENTIONS.items()],
        "multiscales": {"layout": layout},
        "proj:code": "EPSG:32633",
        "spatial:dimensions": ["y", "x"],
    })  # fmt: skip
    return found
