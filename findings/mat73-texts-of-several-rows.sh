#!/usr/bin/env bash
# mat73 and mat73-reader mix up the letters of MATLAB texts of several rows: the channels Fp1 and Cz4 are read as FCpz14.
#
# Versions: mat73 0.65, mat73-reader 0.1.1, pymatreader 1.3.2, hdf5storage 0.2.2, h5py 3.16.0, numpy 2.5.5.
# Behaviour: MATLAB keeps lists of names of the same length as a matrix of letters, one name a row. Its files of version 7.3
# are HDF5 and hold a matrix column by column. mat73 and mat73-reader join the letters as they lie there into one text.
# A text of one row is right, and so are matrices of numbers. mat73-reader shows the shape of an empty matrix, which such
# files hold in its place with a mark, as two numbers. There is no error.
# Expected before the run: two names, and no numbers.
# Output seen:
#   Fp1        mat73 Fp1     mat73-reader Fp1     pymatreader Fp1             hdf5storage [['Fp1']]
#   Fp1; Cz4   mat73 FCpz14  mat73-reader FCpz14  pymatreader ['Fp1', 'Cz4']  hdf5storage [['Fp1'], ['Cz4']]
#   no rows    mat73 None    mat73-reader [0, 3]  pymatreader []              hdf5storage []
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install mat73==0.65 mat73-reader==0.1.1 pymatreader==1.3.2 hdf5storage==0.2.2 h5py==3.16.0 \
    numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import hdf5storage
import mat73
import mat73_reader
import numpy as np
import pymatreader

for name, rows, seen in (
    ("Fp1", ["Fp1"], ("Fp1", "Fp1", "Fp1", "[['Fp1']]")),
    ("Fp1; Cz4", ["Fp1", "Cz4"], ("FCpz14", "FCpz14", "['Fp1', 'Cz4']", "[['Fp1'], ['Cz4']]")),
    ("no rows", [], ("None", "[0, 3]", "[]", "[]")),
):
    matrix = np.array([list(row) for row in rows]) if rows else np.zeros((0, 3))
    hdf5storage.savemat("names.mat", {"names": matrix}, format="7.3", store_python_metadata=False)
    read = (mat73.loadmat, mat73_reader.load, pymatreader.read_mat, hdf5storage.loadmat)
    found = tuple(str(np.array(function("names.mat")["names"]).tolist()) for function in read)
    print(f"{name:10} mat73 {found[0]:6}  mat73-reader {found[1]:6}  pymatreader {found[2]:14}  hdf5storage {found[3]}")
    assert found == seen
PYTHON
