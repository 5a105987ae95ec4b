#!/usr/bin/env bash
# The zarrs pipeline swaps the real and imaginary parts of big-endian numbers at the edge of an array.
#
# Versions: zarr 3.1.6, zarrs 0.2.3, zarrista 0.1.0, tensorstore 0.1.86, numpy 2.4.6.
# Behaviour: an array of complex numbers whose codec "bytes" is big-endian reads right in whole chunks.
# Where zarr-python asks the zarrs pipeline for a part of a chunk, 1 + 2i comes back as 2 + 1i: in
# chunks that the edge of the array cuts, and in slices. float32 has no such fault, and zarrista,
# which uses the same library in Rust, reads all of them right.
# One would expect: a slice shows what the whole shows.
# Output seen (all seven numbers are 1 + 2i, in chunks of three):
#   complex64   zarr-python right; zarrs whole 1 wrong, x[0:2] 2 wrong; zarrista right; TensorStore right
#   complex128  zarr-python right; zarrs whole 1 wrong, x[0:2] 2 wrong; zarrista right; TensorStore right
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr==3.1.6 zarrs==0.2.3 zarrista==0.1.0 \
    tensorstore==0.1.86 numpy==2.4.6 numcodecs==0.16.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os

import numpy as np
import tensorstore
import zarr
import zarrs  # noqa: F401
from zarr.codecs import BytesCodec
from zarrista import Array
from zarrista.store import FilesystemStore

for dtype in ("complex64", "complex128"):
    values = np.full(7, 1 + 2j, dtype)
    zarr.create_array(
        dtype, shape=7, chunks=3, dtype=dtype, serializer=BytesCodec(endian="big"), compressors=None
    )[:] = values
    python = zarr.open_array(dtype, mode="r")
    assert (python[:] == values).all() and (python[0:2] == values[0:2]).all()
    rust = Array.open(FilesystemStore(dtype), path="/")
    assert (rust[:].to_numpy() == values).all() and (rust[0:2].to_numpy() == values[0:2]).all()
    spec = {"driver": "zarr3", "kvstore": f"file://{os.getcwd()}/{dtype}"}
    store = tensorstore.open(spec).result()
    assert (store.read().result() == values).all()
    assert (store[0:2].read().result() == values[0:2]).all()
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        pipeline = zarr.open_array(dtype, mode="r")
        whole, part = pipeline[:], pipeline[0:2]
    print(
        f"{dtype:11} zarr-python right; zarrs whole {(whole != values).sum()} wrong, "
        f"x[0:2] {(part != values[0:2]).sum()} wrong; zarrista right; TensorStore right"
    )
    assert (whole[:6] == values[:6]).all()
    assert whole[6] == part[0] == part[1] == 2 + 1j
PYTHON
