#!/usr/bin/env bash
# `zarr migrate v3` turns 20, 25 and 33 into 541982.75, -1470038 and -394264.56, if a filter changed the byte order.
#
# Versions: zarr 3.4.2, numcodecs 0.17.1, virtualizarr 2.8.0, obstore 0.12.1, arro3-core 0.9.1, numpy 2.5.5.
# Behaviour: the command writes Zarr v3 metadata beside Zarr v2 chunks, which it does not read. A filter of Zarr v2 says
# in which byte order its result is stored, and the command derives the codec `bytes` from the order of the array
# instead. Where the two differ, as for big-endian floats packed into `i2`, or floats packed into big-endian integers,
# zarr-python reads other numbers from the migrated array. Where the order stays, the result is right. The
# command ends with success, and no reader reports an error. With --remove-v2-metadata the right description is gone.
# VirtualiZarr derives its view of Zarr v2 stores with the same function, and shows the same numbers.
# Expected before the run: the same numbers before and after, or a refusal.
# Output seen (Zarr v2, then v3, where VirtualiZarr shows the same):
#   >f4 packed to <i4  [20.0, 25.0, 33.0]  [541982.75, -1470038.0, -394264.5625]
#   <f8 packed to >i2  [20.0, 25.0, 33.0]  [-122.81, -153.51, -71.56]
#   >f4 stored as <f4  [20.0, 25.0, 33.0]  [5.748826949892562e-41, 7.183756577361175e-41, 1.5274153261140506e-42]
#   <i2 delta in >i2   [20, 25, 33]        [5120, 6400, 8448]
#   <f8 packed to <i2  [20.0, 25.0, 33.0]  [20.0, 25.0, 33.0]
#   >f4 packed to >i4  [20.0, 25.0, 33.0]  [20.0, 25.0, 33.0]
#   >f4 no filter      [20.0, 25.0, 33.0]  [20.0, 25.0, 33.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install "zarr[cli]==3.4.2" numcodecs==0.17.1 virtualizarr==2.8.0 \
    obstore==0.12.1 obspec-utils==0.9.0 arro3-core==0.9.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os
import subprocess

import numpy as np
import zarr
from numcodecs import AsType, Delta, FixedScaleOffset
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr.parsers import ZarrParser

registry = ObjectStoreRegistry({"file://": LocalStore()})

cases = {
    ">f4 packed to <i4": (">f4", [FixedScaleOffset(0, 1000, ">f4", "<i4")]),
    "<f8 packed to >i2": ("<f8", [FixedScaleOffset(0, 100, "<f8", ">i2")]),
    ">f4 stored as <f4": (">f4", [AsType("<f4", ">f4")]),
    "<i2 delta in >i2": ("<i2", [Delta("<i2", ">i2")]),
    "<f8 packed to <i2": ("<f8", [FixedScaleOffset(0, 100, "<f8", "<i2")]),
    ">f4 packed to >i4": (">f4", [FixedScaleOffset(0, 1000, ">f4", ">i4")]),
    ">f4 no filter": (">f4", None),
}
for name, (dtype, filters) in cases.items():
    path = name.replace(" ", "-").replace("<", "l").replace(">", "b")
    group = zarr.open_group(path, mode="w", zarr_format=2)
    array = group.create_array(
        "numbers", shape=(3,), chunks=(3,), dtype=dtype, filters=filters, compressors=None
    )
    array[:] = np.array([20, 25, 33], dtype)
    store = ZarrParser()(url=f"file://{os.getcwd()}/{path}", registry=registry)
    virtual = zarr.open_group(store=store, mode="r", zarr_format=3)["numbers"][:].tolist()
    subprocess.run(["venv/bin/zarr", "migrate", "v3", path], check=True)
    before, after = (
        zarr.open_array(f"{path}/numbers", mode="r", zarr_format=version)[:].tolist() for version in (2, 3)
    )
    print(f"{name:17}  {before!s:18}  {after}")
    assert before == [20, 25, 33] and virtual == after
    order_stays = filters is None or name in ("<f8 packed to <i2", ">f4 packed to >i4")
    assert (after == before) == order_stays
    if name == ">f4 packed to <i4":
        assert after == [541982.75, -1470038.0, -394264.5625]
PYTHON
