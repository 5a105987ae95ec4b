#!/usr/bin/env bash
# A smaller level of bioio-ome-zarr shows the first 8 of 12 planes in place of all 12.
#
# Versions: bioio-ome-zarr 3.8.1, dask 2026.8.0, zarr 3.1.6, numcodecs 0.16.5,
# scikit-image 0.26.0, numpy 2.4.6.
# Behaviour: OMEZarrWriter makes smaller levels of dask arrays chunk by chunk. It rounds the size of each
# shrunken chunk up, puts the chunks in a row, and cuts off what is too much at the end. If the
# size of a chunk does not shrink to a whole number, pixels move away from the place that the
# metadata says, further with each chunk. The same array in one chunk is right.
# Expected before the run: each pixel comes from its place, within one pixel of the full image.
# Output seen:
#   scale 1.5, one chunk  planes 0, 2, 3, 5, 6, 8, 9, 11
#   scale 1.5, 12 chunks  planes 0, 1, 2, 3, 4, 5, 6, 7
#   100 columns to 66, chunks of 100: the last is column 99
#   100 columns to 66, chunks of  13: the last is column 94
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install bioio-ome-zarr==3.8.1 "dask[array]==2026.8.0" zarr==3.1.6 \
    numcodecs==0.16.5 scikit-image==0.26.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import dask.array as da
import numpy as np
import zarr
from bioio_ome_zarr.writers import OMEZarrWriter


def level(name, values, chunks, shape):
    shapes = [values.shape, shape]
    writer = OMEZarrWriter(store=name, level_shapes=shapes, dtype="uint16", zarr_format=3)
    writer.write_full_volume(da.from_array(values, chunks=chunks))
    group = zarr.open_group(name, mode="r")
    datasets = group.attrs["ome"]["multiscales"][0]["datasets"]
    assert (group["0"][...] == values).all() and group["1"].shape == shape
    return group["1"][...], datasets[1]["coordinateTransformations"]


planes = np.broadcast_to(np.arange(12, dtype="u2")[:, None, None], (12, 4, 4))
for name, chunks, expected in (
    ("one chunk", 12, [0, 2, 3, 5, 6, 8, 9, 11]),
    ("12 chunks", 1, [0, 1, 2, 3, 4, 5, 6, 7]),
):
    found, place = level(name, planes, (chunks, 4, 4), (8, 4, 4))
    assert place == [{"type": "scale", "scale": [1.5, 1, 1]}]
    print(f"scale 1.5, {name}  planes {', '.join(map(str, found[:, 0, 0]))}")
    assert found[:, 0, 0].tolist() == expected
columns = np.broadcast_to(np.arange(100, dtype="u2"), (4, 100))
for chunks, expected in (100, 99), (13, 94):
    last = level(f"columns {chunks}", columns, (4, chunks), (4, 66))[0][0, -1]
    print(f"100 columns to 66, chunks of {chunks:3}: the last is column {last}")
    assert last == expected
PYTHON
