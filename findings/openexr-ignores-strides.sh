#!/usr/bin/env bash
# OpenEXR writes an image whose channels were turned from BGR to RGB with other pixels in them.
#
# Versions: OpenEXR 3.5.3 (the bindings of the format's makers), numpy 2.5.5.
# Behaviour: the class File takes NumPy arrays as channels. It reads their memory from the first element on, without
# the strides. So an array with its last axis reversed (the usual step from BGR to RGB), a transposed array, every
# other column, a part of an image, and an array in the order of Fortran are written with other pixels. The file is
# valid, and nothing warns.
# Expected before the run: the pixels that NumPy shows, or an error, as big-endian arrays get.
# Output seen (the start of the last row, true and read back):
#   RGB                [12, 13, 14, 15]         right
#   every other column [124, 126, 128, 130]     [112, 113, 114, 115]
#   left half          [124, 125, 126, 127]     [112, 113, 114, 115]
#   transposed         [107, 115, 123, 131]     [128, 129, 130, 131]
#   order of Fortran   [124, 125, 126, 127]     [106, 114, 122, 130]
#   RGB of BGR         [14, 13, 12, 17]         [14, 15, 16, 17]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install OpenEXR==3.5.3 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import OpenEXR

colours = np.arange(36, dtype="float32").reshape(3, 4, 3)[:2]
grey = np.arange(100, 132, dtype="float32").reshape(4, 8)


def written(array, name):
    """The pixels of the array after one file."""
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    with OpenEXR.File(header, {name: array}) as file:
        file.write("image.exr")
    with OpenEXR.File("image.exr") as file:
        return file.channels()[name].pixels


for words, name, array in (
    ("RGB", "RGB", colours),
    ("every other column", "Y", grey[:, ::2]),
    ("left half", "Y", grey[:, :4]),
    ("transposed", "Y", grey.T),
    ("order of Fortran", "Y", np.asfortranarray(grey)),
    ("RGB of BGR", "RGB", colours[..., ::-1]),
):
    found = written(array, name)
    assert found.dtype == array.dtype and found.shape == array.shape
    right = np.array_equal(found, array)
    true, read = (pixels[-1].ravel()[:4].astype(int).tolist() for pixels in (array, found))
    print(f"{words:18} {true!s:24} {'right' if right else read}")
    assert right == (words == "RGB")
PYTHON
