#!/usr/bin/env bash
# asdf loses the mask of an array when it copies a file or updates a note beside it: the mean of 1, 2 and -- becomes 101.
#
# Versions: asdf 6.0.0 (4.1.0 does the same), numpy 2.5.5.
# Behaviour: ASDF, the format of the Roman telescope and others, stores a masked array with its mask, and asdf reads it so.
# If an opened file is written to another, or one entry of it is changed and `update` is called, the arrays that nobody
# touched are written without their masks, and the numbers below come to light. That the array was used before, for a mean
# that respects the mask, changes nothing. `lazy_load=False` and `[:]` keep the mask. Nothing warns.
# Expected before the run: a copy that is like the original.
# Output seen:
#   written                              [1.0 2.0 --]        mean 1.5
#   opened and written to another        [  1.   2. 300.]    mean 101.0
#   the same, compressed with zlib       [  1.   2. 300.]    mean 101.0
#   the same, with lazy_load=False       [1.0 2.0 --]        mean 1.5
#   the array put in another with [:]    [1.0 2.0 --]        mean 1.5
#   the array itself put in another      [  1.   2. 300.]    mean 101.0
#   a note changed and updated           [  1.   2. 300.]    mean 101.0
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install asdf==6.0.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import asdf
import numpy as np

masked, bare = "[1.0 2.0 --]", "[  1.   2. 300.]"


def show(name, path, text):
    with asdf.open(path) as file:
        found, mean = str(file["m"][:]), file["m"][:].mean()
    print(f"{name:36} {found:19} mean {mean}")
    assert found == text and mean == (1.5 if text == masked else 101), found


tree = {"m": np.ma.array([1.0, 2.0, 300.0], mask=[False, False, True]), "note": "raw"}
asdf.AsdfFile(tree).write_to("original.asdf")
show("written", "original.asdf", masked)
with asdf.open("original.asdf") as file:
    assert file["m"].mean() == 1.5
    file.write_to("copy.asdf")
show("opened and written to another", "copy.asdf", bare)
asdf.AsdfFile(tree).write_to("small.asdf", all_array_compression="zlib")
with asdf.open("small.asdf") as file:
    file.write_to("copy.asdf")
show("the same, compressed with zlib", "copy.asdf", bare)
with asdf.open("original.asdf", lazy_load=False) as file:
    file.write_to("copy.asdf")
show("the same, with lazy_load=False", "copy.asdf", masked)
with asdf.open("original.asdf") as file:
    asdf.AsdfFile({"m": file["m"][:]}).write_to("copy.asdf")
show("the array put in another with [:]", "copy.asdf", masked)
with asdf.open("original.asdf") as file:
    asdf.AsdfFile({"m": file["m"]}).write_to("copy.asdf")
show("the array itself put in another", "copy.asdf", bare)
with asdf.open("original.asdf", mode="rw") as file:
    file["note"] = "checked"
    file.update()
show("a note changed and updated", "original.asdf", bare)
PYTHON
