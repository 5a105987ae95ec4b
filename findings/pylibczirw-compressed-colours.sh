#!/usr/bin/env bash
# pylibCZIrw reads compressed 16-bit colours of CZI, which it wrote itself, as chance numbers.
#
# Versions: pylibCZIrw 6.1.0 (of the maker of the format), czifile 2026.10.14, numpy 2.5.5.
# Behaviour: CZI files of 16-bit pixels can be compressed with zstd after their high bytes were put apart from their
# low ones. pylibCZIrw writes grey and colour images so. Of colours (Bgr48) it then reads only the first
# third of the first row right, without an error; the other numbers differ from run to run. czifile reads the same files right.
# Without that step, and for grey pixels, pylibCZIrw reads what it wrote.
# Expected before the run: both read what was written.
# Output seen (an image of 64 x 64 pixels, read back):
#   zstd1:                            grey    pylibCZIrw right    czifile right
#   zstd1:                            colours pylibCZIrw right    czifile right
#   zstd1:PreProcess=HiLoByteUnpack   grey    pylibCZIrw right    czifile right
#   zstd1:PreProcess=HiLoByteUnpack   colours pylibCZIrw wrong    czifile right
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pylibCZIrw==6.1.0 czifile==2026.10.14 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import czifile
import numpy as np
from pylibCZIrw import czi

PLANE = {"T": 0, "C": 0, "Z": 0}


def read(image, options, name):
    """The image as pylibCZIrw and as czifile read the file that pylibCZIrw wrote."""
    with czi.create_czi(name, compression_options=options) as file:
        file.write(data=image, plane=PLANE)
    with czi.open_czi(name) as file:
        own = file.read(plane=PLANE)
    other = np.squeeze(czifile.imread(name)).reshape(image.shape)
    return own, other[..., ::-1]  # czifile gives RGB for BGR


numbers = np.random.default_rng(0).integers(0, 65536, (64, 64, 3)).astype("uint16")
for options in ("zstd1:", "zstd1:PreProcess=HiLoByteUnpack"):
    for kind, image in (("grey", numbers[..., :1]), ("colours", numbers)):
        own, other = read(image.copy(), options, f"{kind}{len(options)}.czi")
        seen = "right" if np.array_equal(own, image) else "wrong"
        found = "right" if np.array_equal(other, image) else "wrong"
        print(f"{options:33} {kind:7} pylibCZIrw {seen}    czifile {found}")
        broken = "PreProcess" in options and kind == "colours"
        assert (seen, found) == ("wrong" if broken else "right", "right")
        if broken:
            assert np.array_equal(own.reshape(-1)[:64], image.reshape(-1)[:64])
            assert (own != image).mean() > 0.9
PYTHON
