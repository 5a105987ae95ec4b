"""Arrays to write to through a mount, and what others read from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts
import zarr
from numpy.typing import NDArray

SHAPE = (60, 50, 40)
FILL = 7

# Borders of chunks and shards fall within the array, within pages and within requests.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"chunks": (17, 20, 16)},
    "sharded": {"chunks": (10, 10, 10), "shards": (30, 30, 20)},
}


@dataclass(frozen=True)
class Target:
    """An array that a mount of ``group`` shows as ``name``.

    data : what is stored at first.
    chunk : the shape of the files in ``chunks/``.
    shard : that of the files in ``shards/``; None where there are none.
    """

    group: Path
    name: str
    data: NDArray[np.uint16]
    chunk: tuple[int, ...]
    shard: tuple[int, ...] | None = None

    def stored(self) -> NDArray[np.uint16]:
        return stored(self.group / self.name)

    def files(self) -> set[str]:
        """Everything below the array's directory, leftovers included."""
        path = self.group / self.name
        return {str(p.relative_to(path)) for p in path.rglob("*") if not p.is_dir()}


def make_array(group: Path, name: str, kind: str) -> Target:
    """An array full of random elements in a new or an old group."""
    zarr.open_group(group, mode="a")
    data = np.random.default_rng(len(name)).integers(0, 1 << 16, SHAPE, np.uint16)
    zarr.create_array(group / name, data=data, fill_value=FILL, **KINDS[kind])
    return Target(group, name, data, KINDS[kind]["chunks"], KINDS[kind].get("shards"))


def stored(path: Path) -> NDArray[Any]:
    """The whole array at ``path``, which zarr-python and TensorStore agree on."""
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    theirs = ts.open(spec, read=True).result().read().result()
    found = np.asarray(zarr.open_array(path, mode="r")[...])
    assert np.asarray(theirs).tobytes() == found.tobytes()
    return found


def other(data: NDArray[Any]) -> NDArray[Any]:
    """Elements all of which differ from those of ``data``."""
    return data ^ np.random.default_rng(0).integers(1, 1 << 16, data.shape, data.dtype)
