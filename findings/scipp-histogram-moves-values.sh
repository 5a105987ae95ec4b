#!/usr/bin/env bash
# scipp counts [2 1 1 1] of the values 0, 1, 2, 3, 4 in four bins from 0 to 4: the 1 is beside the 0.
#
# Versions: scipp 26.9.0, numpy 2.5.5.
# Behaviour: so that the largest value falls in the last bin, scipp moves the last edge up by one unit in the last place, and
# spaces the edges between: those at 1, 2 and 3 end above these numbers, and print as 1, 2, 3. `bin` does the same. With given
# edges scipp leaves out the value at the last one. A sum of int32 is int64, yet the running sum wraps, and the maximum of a
# group that is wholly masked is -1.8e308, or -2**31 for int32, where its mean is NaN. There is no warning.
# Expected before the run: the counts of NumPy for four bins, and its running sum.
# Output seen:
#   0 to 4, 4 bins   NumPy 1 1 1 2   hist 2 1 1 1   bin 2 1 1 1   last edge 4 + 8.9e-16
#   0 to 5, 5 bins   NumPy 1 1 1 1 2   hist 2 1 1 1 1   bin 2 1 1 1 1   last edge 5 + 8.9e-16
#   int32 [2**31 - 1, 1]   sum 2147483648  running sum [2147483647, -2147483648]
#   masked group, float64  max -1.798e+308  mean nan
#   masked group, int32    max -2.147e+09   mean nan
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install scipp==26.9.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import scipp as sc


def events(values):
    place = sc.array(dims=["event"], values=np.array(values, "f8"))
    return sc.DataArray(sc.ones(sizes=place.sizes), coords={"x": place})


for stop, seen in (4, [2, 1, 1, 1]), (5, [2, 1, 1, 1, 1]):
    values = np.arange(stop + 1)
    numpy, _ = np.histogram(values, stop)
    counted = events(values).hist(x=stop)
    binned = events(values).bin(x=stop).bins.size().values.tolist()
    found, above = counted.values.astype(int).tolist(), counted.coords["x"].values[-1] - stop
    columns = [f"{name} {' '.join(map(str, row))}" for name, row in (("NumPy", numpy), ("hist", found), ("bin", binned))]
    print(f"0 to {stop}, {stop} bins   {'   '.join(columns)}   last edge {stop} + {above:.2g}")
    assert found == binned == seen and 0 < above < 1e-15
integers = sc.array(dims=["x"], values=[2**31 - 1, 1], dtype="int32")
total, running = int(sc.sum(integers).value), sc.cumsum(integers).values.tolist()
print(f"int32 [2**31 - 1, 1]   sum {total}  running sum {running}")
assert (total, running) == (2**31, [2**31 - 1, -(2**31)])
for dtype, lowest in ("float64", np.finfo("f8").min), ("int32", -(2**31)):
    masked = sc.DataArray(
        sc.array(dims=["x"], values=[-1, -2, -3], dtype=dtype),
        coords={"group": sc.array(dims=["x"], values=[1, 1, 2])},
        masks={"missing": sc.array(dims=["x"], values=[True, True, False])},
    )
    groups = sc.groupby(masked, "group")
    largest, mean = groups.max("x").values[0], groups.mean("x").values[0]
    print(f"masked group, {dtype:7}  max {largest:<10.4g}  mean {mean}")
    assert largest == lowest and np.isnan(mean)
PYTHON
