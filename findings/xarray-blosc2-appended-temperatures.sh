#!/usr/bin/env bash
# xarray-blosc2 makes 285.04 of each temperature that is appended to a weather grid, and a number of each NaN in it.
#
# Versions: xarray-blosc2 1.7.1, blosc2 4.14.1, xarray 2026.9.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: save_dataset(preset="geogrid") stores floats as differences of packed 16-bit integers. `append_dataset` writes
# the floats of the new times among them, cut to integers, and they are read as differences: all become about the
# same number, in the middle of the range. NaN is stored as an integer, too, and read as a number. The precision,
# documented as "max absolute error = precision/2", is not reached if the range needs more than 16 bits. Nothing is
# reported. Without the preset all is right.
# Expected before the run: the appended numbers to within the precision, NaN as NaN, or an error.
# Output seen:
#   no preset   saved [280.0, 281.5, 290.0] and appended [281.0, 285.5, 289.0]: [280.0, 281.5, 290.0] [281.0, 285.5, 289.0]
#   geogrid     saved [280.0, 281.5, 290.0] and appended [281.0, 285.5, 289.0]: [280.0, 281.5, 290.0] [285.04, 285.04, 285.04]
#   no preset   [280.0, nan, 290.0] with NaN: True
#   geogrid     [280.0, nan, 290.0] with NaN: False
#   geogrid     pressures from 50000 to 101325, precision 0.01: error of 98765.43 above 0.1
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install xarray-blosc2==1.7.1 blosc2==4.14.1 xarray==2026.9.0 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import tempfile
import warnings

import numpy as np
import xarray
import xarray_blosc2

warnings.simplefilter("error", UserWarning)
geogrid = {"preset": "geogrid", "precision": 0.01}


def grid(day, numbers):
    times = np.array([f"2000-01-{day:02}"], "M8[ns]")
    return xarray.Dataset({"field": (("time", "x"), [numbers])}, coords={"time": times, "x": np.arange(len(numbers))})


def stored(options, first, second=None):
    folder = tempfile.mkdtemp(dir=".")
    xarray_blosc2.save_dataset(grid(1, first), folder, **options)
    if second:
        xarray_blosc2.append_dataset(grid(2, second), folder)
    return xarray.open_dataset(folder, engine="blosc2")["field"].values


saved, appended = [280.0, 281.5, 290.0], [281.0, 285.5, 289.0]
for name, options in (("no preset", {}), ("geogrid", geogrid)):
    found = stored(options, saved, appended)
    print(f"{name:11} saved {saved} and appended {appended}: {found[0].round(2).tolist()} {found[1].round(2).tolist()}")
    np.testing.assert_allclose(found[0], saved, atol=0.005)
    np.testing.assert_allclose(found[1], [285.04, 285.04, 285.04] if options else appended, atol=0.005)
for name, options in (("no preset", {}), ("geogrid", geogrid)):
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        found = stored(options, [280.0, np.nan, 290.0])
    print(f"{name:11} [280.0, nan, 290.0] with NaN: {bool(np.isnan(found).any())}")
    assert np.isnan(found).any() == (not options)
error = abs(stored(geogrid, [50000.0, 98765.43, 101325.0])[0, 1] - 98765.43)
print(f"{name:11} pressures from 50000 to 101325, precision 0.01: error of 98765.43 above 0.1")
assert error > 0.1
PYTHON
