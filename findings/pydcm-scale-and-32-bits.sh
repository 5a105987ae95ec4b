#!/usr/bin/env bash
# pydcm makes 4464 of a dose of 70000 when it compresses it without loss, and reads NIfTI files without their scale.
#
# Versions: pydcm 0.5.0 ("the complete DICOM toolkit"), pydicom 3.0.2, nibabel 5.4.2, numpy 2.5.5.
# Behaviour: `compress()` with HTJ2K, lossless, takes 32-bit pixels, which doses have, and its header says 32 bits;
# pydcm reads them back cut to 16 bits. With RLE they are right. Unused high bits, where older files keep an overlay, are cut off
# from signed numbers and not from unsigned ones: 2 is 61442. `from_nifti()` ignores scl_slope and scl_inter, which each
# NIfTI file has whose floats are stored as integers. `to_nifti()` writes 32-bit labels as float32, which
# changes labels above 2**24, such as those of the Allen brain atlas. Nothing warns.
# Expected before the run: the numbers of pydicom and nibabel, or an error.
# Output seen:
#   uint32, RLE lossless    [1, 70000, 3, 4294967295]         pydcm [1, 70000, 3, 4294967295]
#   uint32, HTJ2K lossless  [1, 70000, 3, 4294967295]         pydcm [1, 4464, 3, 65535]
#   int32, HTJ2K lossless   [1, -70000, 3, 65536]             pydcm [1, -4464, 3, 0]
#   uint, 12 of 16 bits     [1, 2, 3, 4095]                   pydcm [1, 61442, 3, 65535]
#   int, 12 of 16 bits      [1, 2, 3, -1]                     pydcm [1, 2, 3, -1]
#   NIfTI, scale            [-10.0, -9.5, -9.0, -8.5]         pydcm [0, 1, 2, 3]
#   NIfTI, to_nifti()       [1, 312782546, 3, 614454277]      pydcm [1.0, 312782560.0, 3.0, 614454272.0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pydcm==0.5.0 pydicom==3.0.2 nibabel==5.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W error - <<'PYTHON'
from pathlib import Path

import nibabel
import numpy as np
import pydcm
import pydicom
from pydicom import uid
from pydicom.dataset import Dataset, FileMetaDataset


def write(pixels, stored):
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = uid.RTDoseStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID = "1.2.3"
    dataset.Rows, dataset.Columns = pixels.shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 8 * pixels.itemsize, stored, stored - 1
    dataset.PixelRepresentation = int(pixels.dtype.kind == "i")
    dataset.PixelData = pixels.tobytes()
    dataset["PixelData"].VR = "OW"
    dataset.save_as("a.dcm", enforce_file_format=True)


def show(name, right, found, seen):
    print(f"{name:23} {right!s:33} pydcm {found}")
    assert found == seen


def check(name, dtype, numbers, seen, syntax=None, stored=None):
    pixels = np.array([numbers[:2], numbers[2:]], dtype)
    write(pixels, stored or 8 * pixels.itemsize)
    right = pydicom.dcmread("a.dcm").pixel_array.ravel().tolist()
    dataset = pydcm.dcmread("a.dcm")
    if syntax:
        dataset.compress(syntax)
        dataset.save_as("b.dcm")
        dataset = pydcm.dcmread("b.dcm")
    show(name, right, np.asarray(dataset.pixel_array).ravel().tolist(), seen)


unsigned, signed = [1, 70000, 3, 2**32 - 1], [1, -70000, 3, 65536]
check("uint32, RLE lossless", "u4", unsigned, unsigned, uid.RLELossless)
check("uint32, HTJ2K lossless", "u4", unsigned, [1, 4464, 3, 65535], uid.HTJ2KLossless)
check("int32, HTJ2K lossless", "i4", signed, [1, -4464, 3, 0], uid.HTJ2KLossless)
overlaid = [1, 0xF002, 3, 0xFFFF]
check("uint, 12 of 16 bits", "u2", overlaid, [1, 0xF002, 3, 0xFFFF], stored=12)
check("int, 12 of 16 bits", "i2", np.array(overlaid, "u2").view("i2").tolist(), [1, 2, 3, -1], stored=12)

image = nibabel.Nifti1Image(np.arange(4, dtype="i2").reshape(4, 1, 1), np.eye(4))
nibabel.save(image, "a.nii")
content = bytearray(Path("a.nii").read_bytes())
content[112:120] = np.array([0.5, -10], "<f4").tobytes()
Path("a.nii").write_bytes(content)
right = np.asarray(nibabel.load("a.nii").dataobj).ravel().tolist()
assert right == [-10, -9.5, -9, -8.5]
show("NIfTI, scale", right, np.asarray(pydcm.from_nifti("a.nii").pixels).ravel().tolist(), [0, 1, 2, 3])
labels = [1, 312782546, 3, 614454277]
nibabel.save(nibabel.Nifti1Image(np.array(labels, "i4").reshape(4, 1, 1), np.eye(4)), "b.nii")
volume = pydcm.from_nifti("b.nii")
assert np.asarray(volume.pixels).ravel().tolist() == labels
volume.to_nifti("c.nii")
found = np.asarray(nibabel.load("c.nii").dataobj).ravel().tolist()
show("NIfTI, to_nifti()", labels, found, [1, 312782560, 3, 614454272])
PYTHON
