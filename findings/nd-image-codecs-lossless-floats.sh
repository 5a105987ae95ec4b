#!/usr/bin/env bash
# The lossless series of nd-image-codecs gives 5 back as 3 behind a large number, and NaN behind a NaN.
#
# Versions: nd-image-codecs 0.2.5 (series of Zarr codecs for images), zarr 3.4.2, numcodecs 0.17.1, numpy 2.5.5.
# Behaviour: `codec_series(..., "nd-delta")` is offered as fast lossless storage. It stores the difference to the element
# before, and accepts float32 and float64. Differences of floats are rounded, so the sum of them is another number.
# After a NaN or an infinity each difference is NaN: all later elements of the chunk become NaN, also in rows of the
# image that had none. Integers come back right, and the series "nd-zfp" gives the same floats back bit by bit. Neither
# package warns; NumPy does if there are infinities.
# Expected before the run: the floats of the image, or an error that names their type.
# Output seen (one chunk of 2 x 4 elements):
#   nd-delta uint16  [[1, 9, 2, 3], [5, 6, 7, 65535]]                    the same
#   nd-delta float32 [[1.0, 1e+20, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0]]      [[1.0, 1e+20, 0.0, 1.0], [3.0, 4.0, 5.0, 6.0]]
#   nd-delta float32 [[1.0, nan, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0]]        [[1.0, nan, nan, nan], [nan, nan, nan, nan]]
#   nd-delta float64 [[1.0, inf, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0]]        [[1.0, inf, nan, nan], [nan, nan, nan, nan]]
#   nd-zfp   float32 [[1.0, 1e+20, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0]]      the same
#   nd-zfp   float32 [[1.0, nan, 2.0, 3.0], [5.0, 6.0, 7.0, 8.0]]        the same
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install nd-image-codecs==0.2.5 zarr==3.4.2 numcodecs==0.17.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import json
from pathlib import Path

import numpy as np
import zarr
from nd_image_codecs import codec_series


def in_short(rows):
    return str([[float(f"{one:.6g}") if rows.dtype.kind == "f" else int(one) for one in row] for row in rows])


def check(family, dtype, second, seen):
    values = np.array([[[1, second, 2, 3], [5, 6, 7, 65535 if dtype == "uint16" else 8]]], dtype)
    shape = list(values.shape)
    metadata = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype, "fill_value": 0}
    metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": shape}}
    metadata["chunk_key_encoding"] = {"name": "default"}
    metadata["codecs"] = codec_series(["z", "y", "x"], shape, dtype, family)
    Path("zarr.json").write_text(json.dumps(metadata))
    array = zarr.open_array(".", mode="r+")
    array[...] = values
    given, found = values[0], array[...][0]
    same = found.tobytes() == given.tobytes()
    shown = "the same" if same else in_short(found)
    print(f"{family:8} {dtype:7} {in_short(given):51} {shown}")
    assert shown == seen


nothing = "nan, nan], [nan, nan, nan, nan]]"
check("nd-delta", "uint16", 9, "the same")
check("nd-delta", "float32", 1e20, "[[1.0, 1e+20, 0.0, 1.0], [3.0, 4.0, 5.0, 6.0]]")
check("nd-delta", "float32", np.nan, f"[[1.0, nan, {nothing}")
check("nd-delta", "float64", np.inf, f"[[1.0, inf, {nothing}")
check("nd-zfp", "float32", 1e20, "the same")
check("nd-zfp", "float32", np.nan, "the same")
PYTHON
