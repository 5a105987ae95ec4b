#!/usr/bin/env bash
# SimpleITK and VTK read float16 TIFF files as unsigned integers.
#
# Versions: tifffile 2026.3.3, SimpleITK 2.5.7, vtk 9.7.2, numpy 2.4.6.
# Behaviour: a TIFF file says in SampleFormat whether 16 bits are an integer or a float. Neither looks
# at it for 16 bits: 1.5 comes back as 15872, as uint16, with no error or warning. float32 is right.
# One would expect: the right numbers, or a refusal, as OpenCV refuses float16.
# Output seen:
#   float32  tifffile [1.5, -2.0, 0.0]  SimpleITK [1.5, -2.0, 0.0]  VTK [1.5, -2.0, 0.0]
#   float16  tifffile [1.5, -2.0, 0.0]  SimpleITK [15872, 49152, 0]  VTK [15872, 49152, 0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install tifffile==2026.3.3 SimpleITK==2.5.7 vtk==9.7.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import SimpleITK
import tifffile
import vtk
from vtk.util.numpy_support import vtk_to_numpy


def in_vtk():
    reader = vtk.vtkTIFFReader()
    reader.SetFileName("a.tif")
    reader.Update()
    return vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars())


def show(name, values, simpleitk, vtk):
    tifffile.imwrite("a.tif", values, photometric="minisblack")
    assert (tifffile.imread("a.tif") == values).all()
    found = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage("a.tif")).ravel()[:3].tolist()
    line = f"{name:<8} tifffile {values.ravel()[:3].tolist()}  SimpleITK {found}"
    assert found == simpleitk, found
    print(f"{line}  VTK {(found := in_vtk().ravel()[:3].tolist())}")
    assert found == vtk, found


numbers = np.tile([1.5, -2.0, 0.0], (4, 8))
show("float32", numbers.astype("f4"), [1.5, -2.0, 0.0], [1.5, -2.0, 0.0])
show("float16", numbers.astype("f2"), [15872, 49152, 0], [15872, 49152, 0])
PYTHON
