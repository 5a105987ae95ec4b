#!/usr/bin/env bash
# Beluga streams -9999 for missing temperatures, and -200 for 0, where xarray reads NaN and 0 from the same Zarr store.
#
# Versions: zarr-beluga 0.3.0, xarray 2026.9.0, zarr 3.4.2, numcodecs 0.17.1, dask 2026.8.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: Beluga reads Zarr for the training of weather models, in place of a loader that reads with xarray; its
# documentation says that "the loop gets the same tensors". It does not look at the attributes _FillValue, scale_factor and
# add_offset, which xarray writes and applies: it passes on what is stored. Of packed integers it says that they are not
# supported; of floats with these attributes it says nothing. Stores of Zarr v2 and v3 are alike.
# Expected before the run: the numbers that xarray reads, or a refusal, as for integers.
# Output seen:
#   no attributes             xarray [0.0, nan, 2.0, 3.0]   Beluga [0.0, nan, 2.0, 3.0]
#   _FillValue -9999          xarray [0.0, nan, 2.0, 3.0]   Beluga [0.0, -9999.0, 2.0, 3.0]
#   scale_factor, add_offset  xarray [0.0, nan, 2.0, 3.0]   Beluga [-200.0, nan, -196.0, -194.0]
#   packed in int16           xarray [0.0, nan, 2.0, 3.0]   Beluga unsupported: variable temperature is int16
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr-beluga==0.3.0 xarray==2026.9.0 zarr==3.4.2 numcodecs==0.17.1 dask==2026.8.0 \
    pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import beluga
import numpy as np
import xarray

numbers = np.array([0, np.nan, 2, 3], "f4")
axes = {
    "time": np.array(["2000-01-01", "2000-01-02"], "M8[ns]"),
    "latitude": [0.0, 10.0],
    "longitude": [0.0, 90.0, 180.0, 270.0],
}
field = np.broadcast_to(numbers, (2, 2, 4))
data = xarray.Dataset({"temperature": (tuple(axes), field)}, coords=axes)
packing = {"scale_factor": 0.5, "add_offset": 100.0}
right = "[0.0, nan, 2.0, 3.0]"
for zarr_format in (2, 3):
    for name, encoding, seen in (
        ("no attributes", {}, right),
        ("_FillValue -9999", {"_FillValue": -9999.0}, "[0.0, -9999.0, 2.0, 3.0]"),
        ("scale_factor, add_offset", {"dtype": "f4", **packing}, "[-200.0, nan, -196.0, -194.0]"),
        ("packed in int16", {"dtype": "i2", "_FillValue": -9999, **packing}, "unsupported: variable temperature is int16"),
    ):
        data.to_zarr(f"{zarr_format}/{name}", zarr_format=zarr_format, encoding={"temperature": encoding})
        truth = str(xarray.open_zarr(f"{zarr_format}/{name}")["temperature"].values[0, 0].tolist())
        try:
            [sample] = beluga.open_zarr_group(str(zarr_format), name).stream([0], frames=1)
            found = str(np.array(np.from_dlpack(sample))[0, 0, 0].tolist())
        except Exception as error:
            found = str(error).partition(" /")[0]
        if zarr_format == 2:
            print(f"{name:25} xarray {truth}   Beluga {found}")
        assert (truth, found) == (right, seen)
PYTHON
