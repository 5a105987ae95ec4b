#!/usr/bin/env bash
# uxarray finds 7.5 as the weighted mean of three faces of 10 K and one without a value.
#
# Versions: uxarray 2026.10.0, xarray 2026.9.0, numba 0.68.1, scipy 1.18.1, pandas 3.1.1, numpy 2.5.5.
# Behaviour: `weighted_mean` multiplies values with the areas of their faces and adds what is not NaN, as xarray's sum does.
# It divides by the area of all faces, also of those without a value: over the ocean of a globe that is one third land, each
# mean is a third too near to 0. `azimuthal_mean` does the same. `mean` leaves NaN out on both sides, as `weighted` of xarray
# does, `integrate` passes it on. There is no warning.
# Expected before the run: 10, or NaN.
# Output seen (four faces of the same area):
#   [10.0, 10.0, 10.0, 10.0]  mean 10.0  weighted_mean 10    azimuthal_mean 10    xarray's weighted 10.0  integral 1.2153
#   [10.0, 10.0, 10.0, nan]   mean 10.0  weighted_mean 7.5   azimuthal_mean 7.5   xarray's weighted 10.0  integral nan
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install uxarray==2026.10.0 xarray==2026.9.0 numba==0.68.1 scipy==1.18.1 pandas==3.1.1 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import uxarray
import xarray

latitudes, longitudes = (axis.ravel() for axis in np.meshgrid([-10.0, 0, 10], [0.0, 10, 20], indexing="ij"))
corners = np.array([[0, 1, 4, 3], [1, 2, 5, 4], [3, 4, 7, 6], [4, 5, 8, 7]])
grid = uxarray.Grid.from_topology(longitudes, latitudes, corners, fill_value=-1)
areas = grid.face_areas.values
np.testing.assert_allclose(areas, areas[0])
for values, seen in (([10.0, 10.0, 10.0, 10.0], 10), ([10.0, 10.0, 10.0, np.nan], 7.5)):
    faces = uxarray.UxDataArray(np.array(values), dims=["n_face"], uxgrid=grid, name="temperature")
    plain = faces.mean().item()
    weighted = float(faces.weighted_mean())
    around = faces.azimuthal_mean(center_coord=(10, 0), outer_radius=10, radius_step=10).values[-1].item()
    right = xarray.DataArray(values).weighted(xarray.DataArray(areas)).mean().item()
    integral = float(faces.integrate())
    print(
        f"{values!s:25} mean {plain}  weighted_mean {weighted:<4.4g}  azimuthal_mean {around:<4.4g}"
        f"  xarray's weighted {right:.1f}  integral {integral:.4f}"
    )
    np.testing.assert_allclose((plain, weighted, around, right), (10, seen, seen, 10))
    assert np.isnan(integral) == np.isnan(values).any()
PYTHON
