#!/usr/bin/env bash
# cloud-volume stores arrays of NumPy's own order transposed, chunk by chunk, with the encoding kempressed.
#
# Versions: cloud-volume 12.15.2, fpzip 1.2.5, zfpc 0.1.2, numpy 2.5.5.
# Behaviour: cloud-volume writes Neuroglancer's precomputed volumes. For the encodings fpzip and zfpc it turns a chunk
# into Fortran's order before it compresses it; for kempressed (fpzip of numbers raised by 2) it does not, and its
# reader takes Fortran's order for granted. So each chunk of an array in C order with one channel comes back with its axes
# exchanged. Arrays in Fortran's order come back right but for rounding, and so do those of two channels. Nothing
# warns. With zfpc, float64 comes back with the precision of float32.
# Expected before the run: the array, within the rounding of kempressed, in each order.
# Output seen (a volume of 8 x 8 x 8 whose first row is 0 to 7, in one chunk):
#   1 of fpzip      order C: [0.0, 1.0, 2.0, 3.0]
#   1 of fpzip      order F: [0.0, 1.0, 2.0, 3.0]
#   1 of zfpc       order C: [0.0, 1.0, 2.0, 3.0]
#   1 of zfpc       order F: [0.0, 1.0, 2.0, 3.0]
#   1 of kempressed order C: [0.0, 64.0, 128.0, 192.0]
#   1 of kempressed order F: [0.0, 1.0, 2.0, 3.0]
#   2 of fpzip      order C: [0.0, 1.0, 2.0, 3.0]
#   2 of fpzip      order F: [0.0, 1.0, 2.0, 3.0]
#   2 of zfpc       order C: [0.0, 1.0, 2.0, 3.0]
#   2 of zfpc       order F: [0.0, 1.0, 2.0, 3.0]
#   2 of kempressed order C: [0.0, 1.0, 2.0, 3.0]
#   2 of kempressed order F: [0.0, 1.0, 2.0, 3.0]
#   zfpc of float64: 0.3333333432674408 for 0.3333333333333333
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install cloud-volume==12.15.2 fpzip==1.2.5 \
    zfpc==0.1.2 zfpy==1.0.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import numpy as np
from cloudvolume import CloudVolume


def stored(array, encoding, name):
    """The array after cloud-volume wrote and read it."""
    info = CloudVolume.create_new_info(
        num_channels=array.shape[3],
        layer_type="image",
        data_type=str(array.dtype),
        encoding=encoding,
        resolution=(1, 1, 1),
        voxel_offset=(0, 0, 0),
        chunk_size=(8, 8, 8),
        volume_size=array.shape[:3],
    )
    volume = CloudVolume(f"file://{os.getcwd()}/{name}", info=info, progress=False)
    volume.commit_info()
    volume[:, :, :] = array
    return np.asarray(volume[:, :, :])


for channels in (1, 2):
    array = np.arange(512 * channels, dtype="float32").reshape(channels, 8, 8, 8).transpose(1, 2, 3, 0).copy()
    for encoding in ("fpzip", "zfpc", "kempressed"):
        for order in "CF":
            found = stored(np.array(array, order=order), encoding, f"{encoding}{channels}{order}")
            assert found.shape == array.shape and found.dtype == array.dtype
            row = found[0, 0, :4, 0].round(3).tolist()
            print(f"{channels} of {encoding:10} order {order}: {row}")
            if (channels, encoding, order) == (1, "kempressed", "C"):
                assert np.allclose(found[..., 0], array[..., 0].transpose(2, 1, 0), atol=0.001)
            else:
                assert np.allclose(found, array, atol=0.001)
numbers = np.full((8, 8, 8, 1), 1 / 3)
found = stored(numbers, "zfpc", "double").ravel()[0].item()
print(f"zfpc of float64: {found} for {1 / 3}")
assert found == float(np.float32(1 / 3))
PYTHON
