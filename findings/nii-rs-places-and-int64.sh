#!/usr/bin/env bash
# nii-rs puts a NIfTI image that has only a quaternion at the origin, and reads 2**53 + 1 of int64 as 2**53.
#
# Versions: nii-rs 0.1.2, SimpleITK 2.5.7, nibabel 5.4.2, numpy 2.5.5.
# Behaviour: nii-rs promises the interface of SimpleITK ("ITK style"). A NIfTI file places its image with a quaternion
# (qform) or a matrix (sform), and says by codes which of them holds. nii-rs takes origin and direction from the
# sform also where its code is 0 (unknown), so that both are zeros. Where there is a sform, its columns of direction are
# as long as the voxels, where ITK's have length 1. Its get_affine is right in both cases. 64-bit integers pass
# through float64, also if np.int64 is asked for. Nothing warns.
# Expected before the run: the same origin and direction as SimpleITK, and exact integers.
# Output seen (voxels of 3 x 2 x 4 mm, turned by 90 degrees; origin at -7, -8, 9):
#   qform ITK    origin [-7.0, -8.0, 9.0], direction [0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
#   qform nii-rs origin [0.0, 0.0, 0.0], direction [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
#   sform ITK    origin [-7.0, -8.0, 9.0], direction [0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
#   sform nii-rs origin [-7.0, -8.0, 9.0], direction [0.0, 2.0, 0.0, -3.0, 0.0, 0.0, 0.0, 0.0, 4.0]
#   int64 SimpleITK 9007199254740993, nii-rs 9007199254740992
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install nii-rs==0.1.2 SimpleITK==2.5.7 nibabel==5.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import nibabel
import nii
import numpy as np
import SimpleITK

affine = np.array([[0, -2, 0, 7], [3, 0, 0, 8], [0, 0, 4, 9], [0, 0, 0, 1.0]])
pixels = np.arange(24, dtype="int16").reshape(2, 3, 4)


def plain(numbers):
    return [float(number) for number in np.round(np.ravel(numbers), 3) + 0.0]


for name in ("qform", "sform"):
    image = nibabel.Nifti1Image(pixels, affine if name == "sform" else None)
    if name == "qform":
        image.set_qform(affine, 1)
        image.set_sform(None, 0)
    nibabel.save(image, f"{name}.nii")
    own = nii.read_image(f"{name}.nii", np.int16)
    itk = SimpleITK.ReadImage(f"{name}.nii")
    assert np.array_equal(own.ndarray(), SimpleITK.GetArrayFromImage(itk))
    assert np.allclose(own.get_affine(), affine, atol=1e-5)
    assert np.allclose(own.get_spacing(), itk.GetSpacing())
    right = plain(itk.GetOrigin()), plain(itk.GetDirection())
    found = plain(own.get_origin()), plain(own.get_direction())
    print(f"{name} ITK    origin {right[0]}, direction {right[1]}")
    print(f"{name} nii-rs origin {found[0]}, direction {found[1]}")
    assert right == ([-7, -8, 9], [0, 1, 0, -1, 0, 0, 0, 0, 1])
    expected = {"qform": ([0, 0, 0], [0] * 9), "sform": ([-7, -8, 9], [0, 2, 0, -3, 0, 0, 0, 0, 4])}
    assert found == expected[name]

number = 2**53 + 1
nibabel.save(nibabel.Nifti1Image(np.full((2, 2, 2), number), affine, dtype="int64"), "large.nii")
right = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage("large.nii")).ravel()[0]
found = nii.read_image("large.nii", np.int64).ndarray().ravel()[0]
print(f"int64 SimpleITK {right}, nii-rs {found}")
assert (right, found) == (number, number - 1)
PYTHON
