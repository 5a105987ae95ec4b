#!/usr/bin/env bash
# simplezarr reads 0 in place of 1 to 20 if the process has too many open files, and stores the zeros beside a later write.
#
# Versions: simplezarr 1.2.0, zarr 3.4.2, numcodecs 0.17.1, numpy 2.5.5.
# Behaviour: simplezarr takes each OSError of a store for a chunk that was never written. These are also the errors of open files,
# permissions, time limits and broken connections. A write of one element reads the chunk first; if that read fails once, the
# other elements of the chunk are lost for good. zarr-python raises the error. Besides, the smaller levels of a
# pyramid have 0 where uint64 is at its largest, and True where one of four booleans is; a chunk of -0.0 is
# not stored, and becomes 0.0; and zarr-python cannot open complex arrays, because of the text "0j" as fill value.
# Expected before the run: an error for each chunk that cannot be read, and 2**64 - 1 and False in the levels.
# Output seen (with as many open files as the process may have, then with a store that times out once):
#   simplezarr: [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]
#   zarr-python: OSError: Too many open files
#   after a[0] = 100, with one timeout: [100 0 0 0 0 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20]
#   level 1 of 2**64 - 1 everywhere: 0
#   level 1 of 2**63 - 1 everywhere: -9223372036854775808
#   level 1 of one True beside three False: True
#   -0.0 everywhere: 0.0
#   a complex array in zarr-python: Invalid type: 0j. Expected a float or a special string encoding of a float.
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install simplezarr==1.2.0 zarr==3.4.2 numcodecs==0.17.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import os
import resource

import numpy as np
import simplezarr
import zarr
from simplezarr.utils.write_multiscale import PyramidData, write_ome_zarr_pyramid


def report(name, found, seen):
    print(f"{name}: {found}")
    assert str(found) == seen, found


class TimingOut(simplezarr.MemoryStore):
    failing = False

    def _get(self, key):
        if self.failing:
            self.failing = False
            raise TimeoutError("timed out")
        return super()._get(key)


def written(store, name, values, chunk):
    array = simplezarr.ZarrArray.create(store, name, values.shape, values.dtype, chunk_shape=chunk)
    array[...].set_now(values)
    return array


numbers = np.arange(1, 21, dtype="i4")
folder = simplezarr.LocalStore(os.getcwd())
array = written(folder, "numbers", numbers, (5,))
peer = zarr.open_array("numbers", mode="r")
assert np.array_equal(array[...].get_now(), numbers) and np.array_equal(peer[:], numbers)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
held = []
try:
    while True:
        held.append(open(os.devnull))
except OSError:
    pass
zeros = array[...].get_now()
try:
    error = f"read {peer[:]}"
except OSError as raised:
    error = f"OSError: {raised.strerror}"
for file in held:
    file.close()
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
report("simplezarr", zeros, str(0 * numbers))
report("zarr-python", error, "OSError: Too many open files")

store = TimingOut()
array = written(store, "numbers", numbers, (5,))
store.failing = True
array[0].set_now(100)
found = " ".join(map(str, array[...].get_now()))
report("after a[0] = 100, with one timeout", f"[{found}]", f"[100 0 0 0 0 {' '.join(map(str, range(6, 21)))}]")


def level(values):
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    data = PyramidData(values, codecs=codecs, fill_value=0)
    group = write_ome_zarr_pyramid(simplezarr.MemoryStore(), "image", "yx", data, nlevels=2, chunk_shape=4)
    return group["level1"][...].get_now()[0, 0]


report("level 1 of 2**64 - 1 everywhere", level(np.full((8, 8), 2**64 - 1, "u8")), "0")
report("level 1 of 2**63 - 1 everywhere", level(np.full((8, 8), 2**63 - 1, "i8")), str(-(2**63)))
mask = np.zeros((8, 8), bool)
mask[::2, ::2] = True
report("level 1 of one True beside three False", level(mask), "True")
report("-0.0 everywhere", written(store, "zeros", np.full(3, -0.0), (3,))[...].get_now()[0], "0.0")
written(folder, "complex", np.array([1 + 2j]), (1,))
try:
    error = zarr.open_array("complex", mode="r")[:]
except TypeError as raised:
    error = raised
seen = "Invalid type: 0j. Expected a float or a special string encoding of a float."
report("a complex array in zarr-python", error, seen)
PYTHON
