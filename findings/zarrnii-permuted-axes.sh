#!/usr/bin/env bash
# zarrnii moves a NIfTI image to another place, if its axes are not along x, y and z in that order.
#
# Versions: zarrnii 0.22.0, nibabel 5.4.2, dask 2026.8.0, zarr 3.4.2, ngff-zarr 0.50.0, numpy 2.5.5.
# Behaviour: zarrnii reads NIfTI, works on it as OME-Zarr, and writes NIfTI. Reading and writing alone keeps the voxels, but
# of an image whose second axis runs along z and whose third along y, as coronal scans are stored, it exchanges the
# offsets of y and z. The voxel is then 38 mm from its place. By way of an OME-Zarr the result is the
# same. Images whose axes are x, y and z keep their place, flipped ones too. Nothing warns.
# Expected before the run: the same place for each voxel.
# Output seen (where voxel 1, 1, 1 is):
#   axes x y z    before [12, 23, 34]   after [12, 23, 34]
#   axes -x y z   before [48, 23, 34]   after [48, 23, 34]
#   axes -x z y   before [48, -16, 10]  after [48, 11, -17]
#   axes z x y    before [12, 23, 34]   after [22, 33, 14]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarrnii==0.22.0 nibabel==5.4.2 dask==2026.8.0 zarr==3.4.2 ngff-zarr==0.50.0 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import nibabel
import numpy as np
from zarrnii import ZarrNii

voxels = np.arange(8 * 9 * 10, dtype="f4").reshape(8, 9, 10)
for name, rows, true, moved in (
    ("x y z", [[2, 0, 0, 10], [0, 3, 0, 20], [0, 0, 4, 30]], [12, 23, 34], [12, 23, 34]),
    ("-x y z", [[-2, 0, 0, 50], [0, 3, 0, 20], [0, 0, 4, 30]], [48, 23, 34], [48, 23, 34]),
    ("-x z y", [[-2, 0, 0, 50], [0, 0, 4, -20], [0, 3, 0, 7]], [48, -16, 10], [48, 11, -17]),
    ("z x y", [[0, 2, 0, 10], [0, 0, 3, 20], [4, 0, 0, 30]], [12, 23, 34], [22, 33, 14]),
):
    nibabel.Nifti1Image(voxels, np.array([*rows, [0, 0, 0, 1]], "f8")).to_filename("before.nii")
    ZarrNii.from_nifti("before.nii").to_nifti("after.nii")
    images = [nibabel.load(path) for path in ("before.nii", "after.nii")]
    before, after = ((image.affine @ [1, 1, 1, 1])[:3].round().astype(int).tolist() for image in images)
    print(f"axes {name:7}  before {before!s:13}  after {after}")
    assert (images[1].get_fdata() == voxels).all()
    assert before == true and after == moved
PYTHON
