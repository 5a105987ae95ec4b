#!/usr/bin/env bash
# nifti-zarr gives a NIfTI file back without its scale: 26.5 becomes 47, and CT values are off by 1024.
#
# Versions: nifti-zarr 1.0.0rc9, nibabel 5.4.2, zarr 3.4.2, numpy 2.5.5.
# Behaviour: NIfTI files of integers hold a slope and an intercept (scl_slope and scl_inter), which make numbers of the
# stored integers. nii2zarr keeps both in the Zarr store. zarr2nii copies the stored integers and sets no scale, so that
# nibabel shows the stored integers as the numbers, both in the image that it returns and in the file that it writes.
# Nothing warns. The affine matrix and the type come back right.
# Expected before the run: the numbers of the first file.
# Output seen (the second element, stored as 47, of the file before and after):
#   slope 0.5, intercept 3: 26.5 before, 47.0 after
#   slope 1, intercept -1024: -977.0 before, 47.0 after
#   slope -1, intercept 0: -47.0 before, 47.0 after
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install nifti-zarr==1.0.0rc9 nibabel==5.4.2 zarr==3.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import nibabel
import numpy as np
import zarr
from niizarr import nii2zarr, zarr2nii

stored = np.full((8, 8, 8), 47, dtype="int16")
stored[0, 0, 0] = 0
affine = np.diag([2.0, 3.0, 4.0, 1.0])
for slope, intercept in ((0.5, 3), (1, -1024), (-1, 0)):
    image = nibabel.Nifti1Image(stored, affine)
    image.header.set_slope_inter(slope, intercept)
    nibabel.save(image, "before.nii")
    before = nibabel.load("before.nii").get_fdata()
    assert (before == stored * slope + intercept).all()
    nii2zarr("before.nii", "image.nii.zarr")
    header = zarr.open_group("image.nii.zarr", mode="r")["nifti"].attrs
    assert (header["ScaleSlope"], header["ScaleOffset"]) == (slope, intercept)
    zarr2nii("image.nii.zarr", "after.nii")
    after = nibabel.load("after.nii")
    assert np.allclose(after.affine, affine) and after.get_data_dtype() == "int16"
    numbers = after.get_fdata()
    print(f"slope {slope}, intercept {intercept}: {before[0, 0, 1]} before, {numbers[0, 0, 1]} after")
    assert (numbers == stored).all()
PYTHON
