#!/usr/bin/env bash
# Three readers of one Zarr v3 document show three bit patterns for its fill value.
#
# Versions: zarr 3.1.6, zarrs 0.2.3, tensorstore 0.1.86, numpy 2.4.6.
# Behaviour: Zarr v3 lets a document name the exact bits of a float fill value in hexadecimal.
# "0x7f800001" is a signalling NaN. TensorStore shows these bits. zarr-python converts the value
# through a Python float, which sets the quiet bit. The zarrs codec pipeline inside zarr-python
# loses the payload too. So the NaN marks of statistics packages, which differ in the payload
# alone, are told apart by one of three readers.
# One would expect: all show 0x7f800001, since the hexadecimal form exists for this. Known before the
# run: zarr-python sets the quiet bit. Not known: zarrs gives a third pattern.
# Output seen:
#   zarr-python  0x7fc00001
#   zarrs        0x7fc00000
#   TensorStore  0x7f800001
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 zarrs==0.2.3 tensorstore==0.1.86 \
    numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import json
import os

import tensorstore
import zarr
import zarrs  # noqa: F401 - registers its pipeline

zarr.create_array("a", shape=(1,), chunks=(1,), dtype="f4", compressors=None)
with open("a/zarr.json") as file:
    document = json.load(file)
document["fill_value"] = "0x7f800001"
with open("a/zarr.json", "w") as file:
    json.dump(document, file)


def bits(array):
    return hex(array.view("u4")[0])


found = {"zarr-python": bits(zarr.open_array("a", mode="r")[...])}
with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
    found["zarrs"] = bits(zarr.open_array("a", mode="r")[...])
spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{os.getcwd()}/a/"}}
found["TensorStore"] = bits(tensorstore.open(spec).result().read().result())
for reader, value in found.items():
    print(f"{reader:<12} {value}")
assert list(found.values()) == ["0x7fc00001", "0x7fc00000", "0x7f800001"]
PYTHON
