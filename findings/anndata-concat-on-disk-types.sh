#!/usr/bin/env bash
# anndata joins sparse matrices on disk in the type of the first: 8000.5 becomes 127, or 64 in Zarr.
#
# Versions: anndata 0.12.19, zarr 3.1.6, h5py 3.16.0, scipy 1.17.1, pandas 2.3.3, dask 2026.8.0,
# numpy 2.4.6.
# Behaviour: `concat_on_disk` joins files that do not fit in memory; its documentation says that it does what
# `concat` does. Of CSR matrices of different types the result has the type of the first. Counts in int8
# joined with normalized floats lose their fractions and overflow: HDF5 clips them to 127, and Zarr
# wraps around. In the other order of the files all is right, and so are dense matrices. No warning.
# One would expect: the common type, as in `concat` and for dense matrices.
# Output seen (the numbers 0.5, 100.5, 8000.5 after an int8 matrix):
#   concat                         float32 [0.5, 100.5, 8000.5]
#   concat_on_disk, dense, h5ad    float32 [0.5, 100.5, 8000.5]
#   concat_on_disk, dense, zarr    float32 [0.5, 100.5, 8000.5]
#   concat_on_disk, sparse, h5ad   int8 [0, 100, 127]
#   concat_on_disk, sparse, zarr   int8 [0, 100, 64]
#   sparse, floats first, h5ad     float32 [0.5, 100.5, 8000.5]
#   sparse, floats first, zarr     float32 [0.5, 100.5, 8000.5]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install anndata==0.12.19 zarr==3.1.6 h5py==3.16.0 scipy==1.17.1 \
    pandas==2.3.3 dask==2026.8.0 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import anndata
import numpy as np
from anndata.experimental import concat_on_disk
from scipy import sparse

counts = np.array([[1, 2, 3]], "i1")
floats = np.array([[0.5, 100.5, 8000.5]], "f4")
kinds = {"dense": np.asarray, "sparse": sparse.csr_matrix}
writers = {"h5ad": "write_h5ad", "zarr": "write_zarr"}
readers = {"h5ad": anndata.read_h5ad, "zarr": anndata.read_zarr}
right, clipped, wrapped = [0.5, 100.5, 8000.5], [0, 100, 127], [0, 100, 64]


def joined(kind, format, order):
    """The row of floats, and of which type the whole is."""
    names = []
    for index, values in enumerate(order):
        names.append(f"{kind}{order[0].dtype}{index}.{format}")
        part = anndata.AnnData(kinds[kind](values))
        part.obs_names = [f"row {index}"]
        getattr(part, writers[format])(names[-1])
    target = "joined" + names[0]
    concat_on_disk(names, target)
    matrix = readers[format](target).X
    matrix = matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
    return matrix.dtype.name, matrix[[values is floats for values in order].index(True)].tolist()


both = anndata.concat([anndata.AnnData(sparse.csr_matrix(x)) for x in (counts, floats)])
print(f"{'concat':30} {both.X.dtype} {both.X.toarray()[1].tolist()}")
assert both.X.dtype == "f4" and both.X.toarray()[1].tolist() == right
seen = [
    ("concat_on_disk, dense, h5ad", "dense", "h5ad", (counts, floats), "float32", right),
    ("concat_on_disk, dense, zarr", "dense", "zarr", (counts, floats), "float32", right),
    ("concat_on_disk, sparse, h5ad", "sparse", "h5ad", (counts, floats), "int8", clipped),
    ("concat_on_disk, sparse, zarr", "sparse", "zarr", (counts, floats), "int8", wrapped),
    ("sparse, floats first, h5ad", "sparse", "h5ad", (floats, counts), "float32", right),
    ("sparse, floats first, zarr", "sparse", "zarr", (floats, counts), "float32", right),
]
for title, kind, format, order, dtype, expected in seen:
    found = joined(kind, format, order)
    print(f"{title:30} {found[0]} {found[1]}")
    assert found == (dtype, expected)
PYTHON
