#!/usr/bin/env bash
# With numbagg installed, xarray's mean of a group of 20 million times 0.1 is 0.1048576 instead of 0.1.
#
# Versions: flox 0.11.2, numbagg 0.9.6, numpy_groupies 0.16.0, xarray 2026.9.0, pandas 3.1.1, numpy 2.5.5.
# Behaviour: xarray leaves `groupby` to flox, and flox takes one of four engines: numbagg, if it is there and the
# reduction skips NaN, which is what xarray asks for. numbagg adds float32 one after the other in float32: a sum
# of 2**21 takes no more 0.1. `numbagg.nanmean` of the same array is right, and `skipna=False` too, for
# which flox takes another engine. The engine "numba" is off by 4 percent to the other side. Sums of int8 wrap
# in numbagg only; xarray widens integers before it calls flox, so that this meets only those who call flox.
# Expected before the run: the engines differ in the last digits only, as numbers and time are all that they trade.
# Output seen:
#   xarray, default engine  0.1048576   skipna=False 0.1   engine="numpy" 0.1   engine="flox" 0.1
#   flox nansum of int8     100 + 100 = -56   engine="numpy" 200   engine="flox" 200
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install flox==0.11.2 numbagg==0.9.6 numpy_groupies==0.16.0 \
    xarray==2026.9.0 pandas==3.1.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import flox
import numpy as np
import xarray

group = np.zeros(20_000_000, "i4")
values = xarray.DataArray(np.full(group.size, 0.1, "f4"), {"group": ("x", group)}, "x")
groups = values.groupby("group")
default, plain = groups.mean().item(), groups.mean(skipna=False).item()
others = {name: groups.mean(engine=name).item() for name in ("numpy", "flox")}
print(
    f"xarray, default engine  {default:.7f}   skipna=False {plain:.1f}   "
    + "   ".join(f'engine="{name}" {mean:.1f}' for name, mean in others.items())
)
assert round(default, 5) == 0.10486
np.testing.assert_allclose([plain, *others.values()], 0.1, rtol=1e-6)

small, group = np.array([100, 100], "i1"), np.array([0, 0])
total = flox.groupby_reduce(small, group, func="nansum")[0].item()
others = {
    name: flox.groupby_reduce(small, group, func="nansum", engine=name)[0].item()
    for name in ("numpy", "flox")
}
print(
    f"flox nansum of int8     100 + 100 = {total}   "
    + "   ".join(f'engine="{name}" {other}' for name, other in others.items())
)
assert total == -56 and set(others.values()) == {200}
PYTHON
