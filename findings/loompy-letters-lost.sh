#!/usr/bin/env bash
# loompy reads the names of two genes, α-actin and β-actin, as one name, though its file holds both.
#
# Versions: loompy 3.0.8, h5py 3.16.0, numpy 2.5.5.
# Behaviour: loompy writes text as UTF-8. When it reads attributes, it leaves out every letter outside ASCII without an
# error, so that names become equal or empty. A text that looks like an entity of HTML comes back as its letter.
# Expected before the run: the texts that were written.
# Output seen:
#   written  α-actin, β-actin, é, Müller, &alpha;
#   in HDF5  α-actin, β-actin, é, Müller, &alpha;
#   loompy   -actin, -actin, , Mller, α
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install loompy==3.0.8 h5py==3.16.0 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import h5py
import loompy
import numpy as np

names = ["α-actin", "β-actin", "é", "Müller", "&alpha;"]
loompy.create("a.loom", np.ones((5, 2)), {"Gene": np.array(names)}, {"CellID": np.array(["a", "b"])})
with h5py.File("a.loom") as file:
    stored = [str(name) for name in file["row_attrs/Gene"].asstr(encoding="utf-8")[:]]
with loompy.connect("a.loom", "r") as file:
    found = [str(name) for name in file.ra.Gene]
for title, row in ("written", names), ("in HDF5", stored), ("loompy", found):
    print(f"{title:8} {', '.join(row)}")
assert stored == names and found == ["-actin", "-actin", "", "Mller", "α"]
PYTHON
