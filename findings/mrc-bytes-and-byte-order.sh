#!/usr/bin/env bash
# Three readers of MRC files show other numbers for signed bytes or for big-endian files.
#
# Versions: mrcfile 1.5.4, vtk 9.7.2, rosettasciio 0.15.0 (HyperSpy), gemmi 0.7.5, SimpleITK 2.5.7,
# numpy 2.4.6.
# Behaviour: mode 0 of MRC2014 is signed bytes. VTK and RosettaSciIO read them without a sign: -100 is
# 156. The machine stamp of the header says in which order the bytes of a number are. VTK looks at
# it for the header and not for the data, so that -100 is -25345. gemmi reads big-endian float32 right,
# and makes 2.5e-40 of -100 in 16 bits. SimpleITK reads all of them right, and RosettaSciIO refuses
# big-endian files. Nothing warns.
# One would expect: each reads the files right, or refuses them, as RosettaSciIO does.
# Output seen (the first of the numbers is -100, as uint16 39900):
#   int8             VTK 156, RosettaSciIO 156, gemmi -100.0, SimpleITK -100
#   int16, little    VTK -100, RosettaSciIO -100, gemmi -100.0, SimpleITK -100
#   int16, big       VTK -25345, RosettaSciIO refuses it, gemmi 2.54977e-40, SimpleITK -100
#   uint16, big      VTK 56475, RosettaSciIO refuses it, gemmi 1.42676e-38, SimpleITK 39900
#   float32, big     VTK 7.20183e-41, RosettaSciIO refuses it, gemmi -100.0, SimpleITK -100.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install mrcfile==1.5.4 vtk==9.7.2 rosettasciio==0.15.0 gemmi==0.7.5 \
    SimpleITK==2.5.7 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import gemmi
import mrcfile
import numpy as np
import SimpleITK
import vtk
from rsciio.mrc import file_reader
from vtk.util.numpy_support import vtk_to_numpy


def in_vtk():
    reader = vtk.vtkMRCReader()
    reader.SetFileName("a.mrc")
    reader.Update()
    return vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars())


READERS = {
    "VTK": in_vtk,
    "RosettaSciIO": lambda: np.asarray(file_reader("a.mrc")[0]["data"]),
    "gemmi": lambda: np.array(gemmi.read_ccp4_map("a.mrc").grid).T,
    "SimpleITK": lambda: SimpleITK.GetArrayFromImage(SimpleITK.ReadImage("a.mrc")),
}


def show(name, dtype, first, *expected):
    values = np.arange(first, first + 24).reshape(2, 3, 4).astype(dtype)
    with mrcfile.new("a.mrc", overwrite=True) as file:
        file.set_data(values)
    assert (mrcfile.read("a.mrc") == values).all()
    found = []
    for read in READERS.values():
        try:
            number = read().ravel()[0]
            found.append(str(float(f"{number:.6g}") if number.dtype.kind == "f" else number))
        except ValueError:
            found.append("refuses it")
    shown = ", ".join(f"{reader} {number}" for reader, number in zip(READERS, found, strict=True))
    print(f"{name:<16} {shown}")
    assert found == list(expected), found


refuses = "refuses it"
show("int8", "i1", -100, "156", "156", "-100.0", "-100")
show("int16, little", "<i2", -100, "-100", "-100", "-100.0", "-100")
show("int16, big", ">i2", -100, "-25345", refuses, "2.54977e-40", "-100")
show("uint16, big", ">u2", 39900, "56475", refuses, "1.42676e-38", "39900")
show("float32, big", ">f4", -100, "7.20183e-41", refuses, "-100.0", "-100.0")
PYTHON
