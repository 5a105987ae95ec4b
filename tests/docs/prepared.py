"""What is in ``/data`` when a page begins."""

from pathlib import Path

import h5py
import numpy as np
import zarr
from zarr.codecs import BloscCodec


def prepare(directory: Path) -> None:
    """cells.zarr, an array; experiment.zarr, a hierarchy; weather.nc; new.raw for cells.zarr."""
    cells = zarr.create_array(
        directory / "cells.zarr",
        shape=(64, 256, 256),
        chunks=(16, 64, 64),
        shards=(64, 128, 128),
        dtype="uint16",
        compressors=BloscCodec(cname="zstd", clevel=3),
        dimension_names=("z", "y", "x"),
        attributes={"stain": "DAPI"},
    )
    z, y, x = np.ogrid[:64, :256, :256]
    image = (z + y + x).astype(np.uint16)
    cells[...] = image
    image[::-1].tofile(directory / "new.raw")

    group = zarr.create_group(directory / "experiment.zarr")
    group.create_array("raw", data=image[:32, :96, :96], chunks=(8, 32, 32), shards=(16, 96, 96))
    group.create_group("labels").create_array(
        "nuclei", data=(image[:32, :96, :96] // 40).astype("uint32"), chunks=(16, 48, 48)
    )

    with h5py.File(directory / "weather.nc", "w") as file:
        file.create_dataset("temperature", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3))
