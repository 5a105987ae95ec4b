#!/usr/bin/env bash
# SimpleITK reads NaN and both infinities of a NIfTI file as 0, without a warning.
#
# Versions: SimpleITK 2.5.7, nibabel 5.4.2, numpy 2.4.6.
# Behaviour: SimpleITK writes a float32 image with NaN and infinities to NIfTI as they are; nibabel
# shows them. When SimpleITK reads the same file, each of them is 0. A NIfTI file that nibabel wrote
# gives the same. NRRD and MetaImage files of the same image keep all values. A program that takes
# NaN for "outside of the brain" therefore gets measured zeros, from this format only.
# Expected before the run: NaN becomes 0, and the infinities stay.
# Output seen:
#   nibabel reads   [nan, inf, -inf, 1.0]
#   SimpleITK .nii  [0.0, 0.0, 0.0, 1.0]
#   SimpleITK .nrrd [nan, inf, -inf, 1.0]
#   SimpleITK .mha  [nan, inf, -inf, 1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install SimpleITK==2.5.7 nibabel==5.4.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import nibabel
import numpy as np
import SimpleITK

values = np.array([np.nan, np.inf, -np.inf, 1], "f4")
image = SimpleITK.GetImageFromArray(values.reshape(1, 1, 4))
read = {}
for name in ("a.nii", "a.nrrd", "a.mha"):
    SimpleITK.WriteImage(image, name)
    read[name] = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(name)).ravel()
stored = np.asanyarray(nibabel.load("a.nii").dataobj).ravel()
print("nibabel reads  ", stored.tolist())
print("SimpleITK .nii ", read["a.nii"].tolist())
print("SimpleITK .nrrd", read["a.nrrd"].tolist())
print("SimpleITK .mha ", read["a.mha"].tolist())
np.testing.assert_array_equal(stored, values)
np.testing.assert_array_equal(read["a.nii"], [0, 0, 0, 1])
np.testing.assert_array_equal(read["a.nrrd"], values)
np.testing.assert_array_equal(read["a.mha"], values)
PYTHON
