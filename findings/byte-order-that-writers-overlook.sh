#!/usr/bin/env bash
# Three libraries take NumPy arrays of big-endian numbers for little-endian ones.
#
# Versions: tensorstore 0.1.86, pyarrow 26.0.1, imagecodecs 2026.3.6, tifffile 2026.3.3, numpy 2.4.6.
# Behaviour: FITS, NetCDF-3, GRIB and NIfTI files give arrays such as ">u2". `tensorstore.array` and
# `pyarrow.Tensor.from_numpy` keep the bytes and drop the byte order, without an error: 200 becomes
# 51200. Beside them TensorStore's `write` and `pyarrow.array` do it right or refuse. The same
# happens in imagecodecs' JPEG 2000 encoder, so a TIFF that tifffile writes with byteorder=">" and
# JPEG 2000 holds other pixels; its PNG, JPEG XL, JPEG XR and LERC encoders refuse such arrays.
# Expected before the run: each converts the array, or refuses it, as its sister function does.
# Output seen:
#   tensorstore.array       [0, 51200, 36865]
#   TensorStore.write       [0, 200, 400]
#   pyarrow.Tensor          [0, 51200, 36865]
#   pyarrow.array           refuses it
#   tifffile JPEG 2000, <   [0, 200, 400]
#   tifffile JPEG 2000, >   [0, 51200, 36865]
#   tifffile JPEG XL, >     refuses it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tensorstore==0.1.86 pyarrow==26.0.1 imagecodecs==2026.3.6 \
    tifffile==2026.3.3 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import pyarrow
import tensorstore
import tifffile

values = np.arange(256, dtype=">u2").reshape(16, 16) * 200
values = values.astype(">u2")
assert values[0, :3].tolist() == [0, 200, 400]


def write():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    store = tensorstore.open(spec, create=True, dtype="uint16", shape=[16, 16]).result()
    store.write(values).result()
    return store.read().result()


def tiff(byteorder, compression, **arguments):
    options = {"compression": compression, "compressionargs": arguments}
    tifffile.imwrite("a.tif", values, byteorder=byteorder, **options)
    return tifffile.imread("a.tif")


right, swapped = [0, 200, 400], [0, 51200, 36865]
for name, work, expected in (
    ("tensorstore.array", lambda: tensorstore.array(values).read().result(), swapped),
    ("TensorStore.write", write, right),
    ("pyarrow.Tensor", lambda: pyarrow.Tensor.from_numpy(values).to_numpy(), swapped),
    ("pyarrow.array", lambda: pyarrow.array(values[0]), "refuses it"),
    ("tifffile JPEG 2000, <", lambda: tiff("<", "jpeg2000", level=0, reversible=True), right),
    ("tifffile JPEG 2000, >", lambda: tiff(">", "jpeg2000", level=0, reversible=True), swapped),
    ("tifffile JPEG XL, >", lambda: tiff(">", "jpegxl", lossless=True), "refuses it"),
):
    try:
        found = work()[0, :3].tolist()
    except (ValueError, NotImplementedError):
        found = "refuses it"
    print(f"{name:<23} {found}")
    assert found == expected
PYTHON
