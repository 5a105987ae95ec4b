#!/usr/bin/env bash
# zarr-copy makes the zeros of a data set missing, shows -9999 where values were missing, and loses the first time.
#
# Versions: zarr-copy 0.9.0, zarr 3.4.2, numcodecs 0.17.1, xarray 2026.9.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: zarr-copy copies data sets and changes their chunks on the way. It copies the numbers that are stored, and not the
# fill value: that of each array in the copy is 0. In Zarr v2, the form that its documentation speaks of, xarray keeps in
# the fill value which number is missing. It shows each 0 of the copy as missing, also in coordinates, where 0 is the first
# time, and the mark of missing values as a number. The command needs to be told that the copy is Zarr v2, as
# below, or it refuses the codecs. It ends with success.
# Expected before the run: a copy that xarray shows as it shows the original.
# Output seen:
#   original       [[0.0, -3.0, nan], [5.0, 0.0, 2.0]]       mean 0.80       2000-01-01 2000-01-02
#   copy           [[nan, -3.0, -9999.0], [5.0, nan, 2.0]]   mean -2498.75   NaT 2000-01-02
#   other chunks   [[nan, -3.0, -9999.0], [5.0, nan, 2.0]]   mean -2498.75   NaT 2000-01-02
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr-copy==0.9.0 zarr==3.4.2 numcodecs==0.17.1 xarray==2026.9.0 pandas==3.1.1 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import xarray

xarray.Dataset(
    {"temperature": (("time", "x"), [[0.0, -3, np.nan], [5, 0, 2]])},
    coords={"time": np.array(["2000-01-01", "2000-01-02"], "M8[ns]")},
).to_zarr("original", zarr_format=2, encoding={"temperature": {"dtype": "i2", "_FillValue": -9999}})
PYTHON
export ZARR_DEFAULT_ZARR_FORMAT=2
venv/bin/zarr-copy original copy >/dev/null 2>&1
venv/bin/zarr-copy original "other chunks" --rechunk time=1 >/dev/null 2>&1
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import xarray
import zarr

true = np.array([[0, -3, np.nan], [5, 0, 2]])
wrong = np.array([[np.nan, -3, -9999], [5, np.nan, 2]])
for name in ("original", "copy", "other chunks"):
    data = xarray.open_zarr(name, consolidated=False)
    found, days = data["temperature"].values, data["time"].values.astype("M8[D]").astype(str).tolist()
    print(f"{name:14} {found.tolist()!s:41} mean {np.nanmean(found):<10.2f} {' '.join(days)}")
    first = name == "original"
    assert np.array_equal(found, true if first else wrong, equal_nan=True)
    assert days == ["2000-01-01" if first else "NaT", "2000-01-02"]
    array = zarr.open_array(f"{name}/temperature")
    assert (array[:] == [[0, -3, -9999], [5, 0, 2]]).all() and array.fill_value == (-9999 if first else 0)
PYTHON
