#!/usr/bin/env bash
# With the newest zfpy installed, `import zarr` fails, also for those who use no zfp.
#
# Versions: zfpy 1.0.1.post0 and 1.0.1, numcodecs 0.16.6, zarr 3.1.6, xarray 2026.9.0, numpy 2.4.6.
# Behaviour: numcodecs takes the version of zfpy from its metadata and makes an integer of each part
# between dots. "post0" is none. The ValueError leaves `import numcodecs`, so zarr cannot be
# imported. zfpy itself works, and xarray still lists the engine "zarr". All is well with zfpy
# 1.0.1, and without zfpy.
# One would expect: all imports work, since zfpy is optional and the import is guarded.
# Output seen:
#   zfpy 1.0.1        round trip True, xarray lists zarr True, import zarr: works
#   zfpy 1.0.1.post0  round trip True, xarray lists zarr True, import zarr: ValueError: invalid
#                     literal for int() with base 10: 'post0'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install numcodecs==0.16.6 zarr==3.1.6 xarray==2026.9.0 numpy==2.4.6
cd "$folder"
cat > look.py <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import zfpy

values = np.arange(16.0)
same = bool((zfpy.decompress_numpy(zfpy.compress_numpy(values)) == values).all())
try:
    import zarr  # noqa: F401

    found = "works"
except ValueError as error:
    found = f"ValueError: {error}"
import xarray

listed = "zarr" in xarray.backends.list_engines()
print(f"zfpy {version('zfpy'):<12} round trip {same}, xarray lists zarr {listed}, import zarr: {found}")
assert same and listed
assert found.startswith(sys.argv[1])
PYTHON
"$folder/venv/bin/pip" --quiet install zfpy==1.0.1
venv/bin/python -I -W ignore look.py works
"$folder/venv/bin/pip" --quiet install zfpy==1.0.1.post0
venv/bin/python -I -W ignore look.py ValueError
