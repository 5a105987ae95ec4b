#!/usr/bin/env bash
# Two new readers of cloud-optimized TIFF files undo the predictor in a wrong way.
#
# Versions: async-geotiff 0.5.1, virtual-tiff 0.5.0, virtualizarr 2.5.1, obstore 0.12.1, zarr 3.1.6,
# tifffile 2026.3.3, imagecodecs 2026.3.6, numpy 2.4.6.
# Behaviour: a predictor stores the difference of each number to the one before it in the same band.
# async-geotiff takes as many steps back as the file has bands, also where each band has tiles of its own
# (planar configuration 2): after the first numbers of each row all are wrong. virtual-tiff adds up
# the differences of big-endian files with their bytes swapped: the carry from 1023 to 1024 is lost, and
# numbers that stay within one byte are right. Bands in one tile, little-endian files and files
# without a predictor are right. No error or warning.
# One would expect: both read what GDAL and tifffile read, or refuse it.
# Output seen (the first row is 1022, 1023, 1024, 1025):
#                                 async-geotiff             virtual-tiff
#   bands together                [1022, 1023, 1024, 1025]  [1022, 1023, 1024, 1025]
#   bands apart                   [1022, 1, 1, 1023]        [1022, 1023, 1024, 1025]
#   bands apart, no predictor     [1022, 1023, 1024, 1025]  [1022, 1023, 1024, 1025]
#   one band, big-endian          [1022, 1023, 1024, 1025]  [1022, 1023, 768, 769]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install async-geotiff==0.5.1 virtual-tiff==0.5.0 virtualizarr==2.5.1 \
    obstore==0.12.1 tifffile==2026.3.3 imagecodecs==2026.3.6 zarr==3.1.6 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import asyncio
from pathlib import Path

import numpy as np
import tifffile
import zarr
from async_geotiff import GeoTIFF
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtual_tiff import VirtualTIFF

GEO_KEYS = [
    (33550, "d", 3, (1.0, 1.0, 0.0)),
    (33922, "d", 6, (0.0, 0.0, 0.0, 10.0, 50.0, 0.0)),
    (34735, "H", 16, (1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326)),
]
RAMP = np.arange(1022, 1022 + 32 * 32, dtype="u2").reshape(32, 32)
print(" " * 30 + "async-geotiff".ljust(26) + "virtual-tiff")


async def of_async_geotiff():
    file = await GeoTIFF.open("a.tif", store=LocalStore("."))
    return np.asarray((await file.read()).data)


def of_virtual_tiff():
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    store = VirtualTIFF(ifd=0)(url=f"file://{Path('a.tif').resolve()}", registry=registry)
    group = zarr.open_group(store, mode="r")
    return group[next(iter(group.array_keys()))][:]


def show(name, bands, expected, **options):
    data = RAMP if bands == 1 else np.stack([RAMP] * bands, 0 if "planarconfig" in options else -1)
    tifffile.imwrite(
        "a.tif", data, compression="zlib", tile=(16, 16), photometric="minisblack",
        extratags=GEO_KEYS, **{"predictor": True, "planarconfig": "contig", **options},
    )
    assert (tifffile.imread("a.tif") == data).all()
    rows = []
    for found in (asyncio.run(of_async_geotiff()), of_virtual_tiff()):
        first = np.squeeze(found)
        while first.ndim > 2:
            first = first[0] if first.shape[0] == bands else first[..., 0]
        rows.append(first[0, :4].tolist())
        assert (first == RAMP).all() == expected[len(rows) - 1], (name, rows)
    print(f"{name:<29} {rows[0]!s:<25} {rows[1]}")


show("bands together", 3, (True, True))
show("bands apart", 3, (False, True), planarconfig="separate")
show("bands apart, no predictor", 3, (True, True), planarconfig="separate", predictor=False)
show("one band, big-endian", 1, (True, False), byteorder=">")
PYTHON
