"""A group of columns, as `zarrfs` shows it in ``group.arrow``."""

from pathlib import Path

import numpy as np
import zarr

N = 1003
NAME = "group.arrow"
COLUMNS = {
    "i1": (np.arange(N) % 200 - 100).astype("i1"),
    "u8": np.arange(N).astype("u8") << 40,
    "f4": (np.arange(N) / 7).astype("f4"),
    "b": np.arange(N) % 3 == 0,
    "t": np.arange(N).astype("M8[ms]"),
    "d": np.arange(N).astype("m8[ns]"),
}
COLUMNS["t"][5] = "NaT"
MISSING = np.where(np.arange(N) % 7, np.arange(N), -9).astype("i4")
GENES = {-1: None, 0: "Köln", 1: "y"}
CODES = (np.arange(N) % 3 - 1).astype("i1")


def make_table(path: Path) -> None:
    """Columns of all types, arrays that are none, and a table as AnnData has them."""
    group = zarr.create_group(path, attributes={"title": "Wetter"})
    for name, data in COLUMNS.items():
        group.create_array(name, data=data, chunks=(100,), attributes={"units": "m"})
    attributes = {"_FillValue": -9}
    group.create_array("m", data=MISSING, chunks=(64,), attributes=attributes)
    text = group.create_array("text", shape=(N,), dtype=str, chunks=(50,))
    text[:] = np.array([f"é{i}" for i in range(N)], object)
    group.create_array("short", data=np.zeros(3))
    group.create_array("two", data=np.zeros((N, 2)))
    group.create_array("c", data=np.zeros(N, "c8"))
    obs = group.create_group("obs")
    obs.attrs.update({
        "encoding-type": "dataframe", "_index": "_index", "column-order": ["kind", "n"],
    })  # fmt: skip
    index = obs.create_array("_index", shape=(N,), dtype=str)
    index[:] = np.array([f"cell {i}" for i in range(N)], object)
    obs.create_array("n", data=np.arange(N))
    kind = obs.create_group("kind", attributes={"encoding-type": "categorical", "ordered": True})
    kind.create_array("codes", data=CODES, chunks=(500,))
    kind.create_array("categories", shape=(2,), dtype=str)[:] = np.array(["Köln", "y"], object)
    zarr.create_group(path / "empty").create_array("x", data=np.zeros((2, 2)))
