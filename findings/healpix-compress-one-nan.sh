#!/usr/bin/env bash
# Three of the Zarr codecs of healpix-compress make all 4096 cells of a chunk NaN if one of them is.
#
# Versions: healpix-compress 0.3.1, zarr 3.4.2, PyWavelets 1.8.0, imagecodecs 2026.10.10, numpy 2.5.5.
# Behaviour: hcc-dct, hcc-grad-dct and hcc-grad-dwt transform a chunk as a whole. One missing cell, as at a coast or under
# a cloud, makes the whole chunk NaN when it is read; the other chunks are right. The examples of the package have
# NaN as their fill value. hcc-sentinel2 keeps the cells around a NaN. Nothing is reported.
# Expected before the run: a lossy number in each cell that has one, and NaN in the other, or a refusal to write.
# Output seen:
#   hcc-dct        no NaN: largest error 0.0154   one NaN: 4096 cells are NaN
#   hcc-grad-dct   no NaN: largest error 0.0242   one NaN: 4096 cells are NaN
#   hcc-grad-dwt   no NaN: largest error 0.0209   one NaN: 4096 cells are NaN
#   hcc-sentinel2  no NaN: largest error 0.0001   one NaN: 1 cells are NaN
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install healpix-compress==0.3.1 zarr==3.4.2 PyWavelets==1.8.0 \
    imagecodecs==2026.10.10 numpy==2.5.5
"$folder/venv/bin/python" -I -W ignore - <<'PYTHON'
import hcc.codecs
import numpy as np
import zarr
from hcc.codecs.dct import HccDctCodec
from hcc.codecs.presets import preset
from hcc.codecs.sentinel2 import HccSentinel2Codec

smooth = np.sin(np.arange(8192) / 500) / 4 + 0.5
complete = smooth.astype("f4")
missing = complete.copy()
missing[5] = np.nan


def written(values, codecs):
    *filters, serializer = codecs
    array = zarr.create_array(
        zarr.storage.MemoryStore(),
        data=values,
        chunks=4096,
        fill_value=float("nan"),
        filters=filters or None,
        serializer=serializer,
        compressors=None,
    )
    return array[...]


for name, codecs, expected in (
    ("hcc-dct", [HccDctCodec(delta=3, top_k=16)], 4096),
    ("hcc-grad-dct", preset("hcc-grad-dct", "medium"), 4096),
    ("hcc-grad-dwt", preset("hcc-grad-dwt", "medium"), 4096),
    ("hcc-sentinel2", [HccSentinel2Codec(quantification_value=10000.0, add_offset=-1000.0)], 1),
):
    whole, found = written(complete, codecs), written(missing, codecs)
    error = abs(whole - complete).max()
    print(f"{name:14} no NaN: largest error {error:.4f}   one NaN: {np.isnan(found).sum()} cells are NaN")
    assert error < 0.05 and np.isnan(found[:4096]).sum() == expected and not np.isnan(found[4096:]).any()
PYTHON
