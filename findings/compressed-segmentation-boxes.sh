#!/usr/bin/env bash
# compressed-segmentation encodes a box that is cut out of a volume as other labels, without an error.
#
# Versions: compressed-segmentation 2.3.3 (the codec of Neuroglancer's volumes), crackle-codec 0.55.0, numpy 2.5.5.
# Behaviour: both packages take NumPy arrays of labels. compressed-segmentation reads the memory from the first
# element of the array on, without its strides. So it encodes the elements beside a box instead of the box, the first
# planes instead of every other one, and what lies behind a reversed array. crackle reads all of them right.
# Big-endian labels are refused by compressed-segmentation, and taken for little-endian ones by crackle.
# Expected before the run: both encode what NumPy shows, or refuse it.
# Output seen (the last four labels of the array, true and after encoding and decoding):
#   planes 4 to 7     2044 2045 2046 2047  compressed-segmentation right                crackle right
#   a box             1908 1909 1910 1911  compressed-segmentation 1152 1153 1154 1155  crackle right
#   every other plane 2812 2813 2814 2815  compressed-segmentation 2044 2045 2046 2047  crackle right
#   transposed        4047 4063 4079 4095  compressed-segmentation 4092 4093 4094 4095  crackle right
#   big-endian        4092 4093 4094 4095  compressed-segmentation refuses it           crackle 4228841472 4245618688 ...
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install compressed-segmentation==2.3.3 crackle-codec==0.55.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import compressed_segmentation
import crackle
import numpy as np

volume = np.arange(4096, dtype="uint32").reshape(16, 16, 16)
ARRAYS = {
    "planes 4 to 7": volume[4:8],
    "a box": volume[4:8, 4:8, 4:8],
    "every other plane": volume[4:12:2],
    "transposed": volume.transpose(0, 2, 1),
    "big-endian": volume.astype(">u4"),
}


def neuroglancer(array):
    """The labels that compressed-segmentation gives back."""
    encoded = compressed_segmentation.compress(array)
    return compressed_segmentation.decompress(encoded, array.shape, array.dtype)


def seen(codec, array):
    try:
        found = codec(array)
    except ValueError:
        return "refuses it"
    assert found.shape == array.shape
    return "right" if np.array_equal(found, array) else " ".join(map(str, found.ravel()[-4:]))


for name, array in ARRAYS.items():
    words = seen(neuroglancer, array), seen(lambda data: crackle.decompress(crackle.compress(data)), array)
    true = " ".join(map(str, array.ravel()[-4:]))
    print(f"{name:17} {true:20} compressed-segmentation {words[0]:20} crackle {words[1]}")
    expected = {
        "planes 4 to 7": ("right", "right"),
        "a box": ("1152 1153 1154 1155", "right"),
        "every other plane": ("2044 2045 2046 2047", "right"),
        "transposed": ("4092 4093 4094 4095", "right"),
        "big-endian": ("refuses it", "4228841472 4245618688 4262395904 4279173120"),
    }[name]
    assert words == expected, words
PYTHON
