#!/usr/bin/env bash
# gridpack compresses a NetCDF file without loss, says that all is exact, and the zeros of the restored file are missing.
#
# Versions: gridpack 0.5.4, h5py 3.16.0, h5netcdf 1.8.2, zstandard 0.25.0, xarray 2026.9.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: each HDF5 dataset has a fill value, which is 0 if nobody set one. gridpack writes it as the attribute _FillValue
# into the restored file, where it says that the number is missing. Of files that h5netcdf wrote, each 0 becomes NaN in
# integers, in coordinates, and in floats without a mark of their own, and a first time of 0 is lost. The engine
# "gpz" of xarray shows the compressed file so, too. `gridpack verify` compares the bytes of the numbers and says
# "EXACT". Files that netCDF-C wrote keep their zeros: it sets another fill value. Nothing warns.
# Expected before the run: a file that reads as the first one did.
# Output seen:
#   before         rain [[0.0, 0.5], [2.0, 0.0]]   count [[0, 1], [3, 0]]           2000-01-01T00 2000-01-01T01
#   restored       rain [[nan, 0.5], [2.0, nan]]   count [[nan, 1.0], [3.0, nan]]   NaT 2000-01-01T01
#   engine "gpz"   rain [[nan, 0.5], [2.0, nan]]   count [[nan, 1.0], [3.0, nan]]   NaT 2000-01-01T01
#   gridpack verify: EXACT
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install gridpack==0.5.4 h5py==3.16.0 h5netcdf==1.8.2 zstandard==0.25.0 xarray==2026.9.0 \
    pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import xarray

xarray.Dataset(
    {"rain": (("time", "x"), np.array([[0, 0.5], [2, 0]], "f4")), "count": (("time", "x"), [[0, 1], [3, 0]])},
    coords={"time": np.array(["2000-01-01T00", "2000-01-01T01"], "M8[ns]")},
).to_netcdf("before.nc", engine="h5netcdf", encoding={"rain": {"_FillValue": None}})
PYTHON
venv/bin/gridpack compress before.nc packed.gpz >/dev/null
venv/bin/gridpack decompress packed.gpz restored.nc >/dev/null
verdict=$(venv/bin/gridpack verify before.nc packed.gpz | tail -1)
venv/bin/python -I -W ignore - <<'PYTHON'
import xarray

for name, path, engine, rain, count, first in (
    ("before", "before.nc", "h5netcdf", "[[0.0, 0.5], [2.0, 0.0]]", "[[0, 1], [3, 0]]", "2000-01-01T00"),
    ("restored", "restored.nc", "h5netcdf", "[[nan, 0.5], [2.0, nan]]", "[[nan, 1.0], [3.0, nan]]", "NaT"),
    ('engine "gpz"', "packed.gpz", "gpz", "[[nan, 0.5], [2.0, nan]]", "[[nan, 1.0], [3.0, nan]]", "NaT"),
):
    with xarray.open_dataset(path, engine=engine) as data:
        found = [str(data[key].values.tolist()) for key in ("rain", "count")]
        hours = data["time"].values.astype("M8[h]").astype(str).tolist()
    print(f"{name:14} rain {found[0]}   count {found[1]:26} {' '.join(hours)}")
    assert found == [rain, count] and hours == [first, "2000-01-01T01"]
PYTHON
echo "gridpack verify: $verdict"
[[ $verdict == *EXACT* ]]
