#!/usr/bin/env bash
# A gzip chunk of two members is read by zarr-python and refused by TensorStore and zarrs.
#
# Versions: zarr 3.1.6, zarrs 0.2.3, tensorstore 0.1.86, numpy 2.4.6.
# Behaviour: RFC 1952 says that a gzip file is a series of members, and programs that compress in
# parallel or append (bgzip, mgzip, cat a.gz b.gz) write several. zarr-python decodes them all.
# TensorStore stops after the first one and says that data are missing. The zarrs pipeline inside
# zarr-python decodes the first and says that the chunk has the wrong size.
# Expected before the run: TensorStore refuses them, as it says, and zarrs reads them.
# Output seen:
#   zarr-python  [0, 1, 2, 3]
#   zarrs        refuses it
#   TensorStore  refuses it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 zarrs==0.2.3 tensorstore==0.1.86 \
    numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import gzip
import os

import numpy as np
import tensorstore
import zarr
import zarrs  # noqa: F401 - registers its pipeline

values = np.arange(4, dtype="u1")
zarr.create_array("a", data=values, chunks=(4,), compressors=zarr.codecs.GzipCodec())
with open("a/c/0", "wb") as file:
    file.write(gzip.compress(b"\0\1") + gzip.compress(b"\2\3"))


def by_zarr():
    return zarr.open_array("a", mode="r")[...].tolist()


def by_zarrs():
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return by_zarr()


def by_tensorstore():
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{os.getcwd()}/a/"}}
    return tensorstore.open(spec).result().read().result().tolist()


found = []
for name, read in (("zarr-python", by_zarr), ("zarrs", by_zarrs), ("TensorStore", by_tensorstore)):
    try:
        found.append(read())
        print(f"{name:<12} {found[-1]}")
    except Exception:
        found.append("refuses it")
        print(f"{name:<12} refuses it")
assert found == [values.tolist(), "refuses it", "refuses it"]
PYTHON
