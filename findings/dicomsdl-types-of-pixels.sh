#!/usr/bin/env bash
# DICOMSDL reads 32-bit DICOM pixels as 16-bit ones, and signed bytes without their sign.
#
# Versions: dicomsdl 0.109.4, pydicom 3.0.2, SimpleITK 2.5.7, numpy 2.5.5.
# Behaviour: DICOM says with "Bits Allocated" how wide a pixel is, with "Bits Stored" how much of it is the number,
# and with "Pixel Representation" whether that has a sign. DICOMSDL returns 32-bit pixels, which radiation doses
# have, as the first half of the bytes taken as 16-bit numbers; it takes signed bytes for unsigned ones, and for 12 of 16 bits
# it ignores what is stored: -1 is 4095. No error.
# Expected before the run: the numbers of pydicom and SimpleITK, or an error.
# Output seen:
#   uint32 in 32 bits   pydicom, SimpleITK [1, 70000, 3, 4]     DICOMSDL [1, 0, 4464, 1]
#   int32 in 32 bits    pydicom, SimpleITK [1, -1, -2, 4]       DICOMSDL [1, 0, -1, -1]
#   int8 in 8 bits      pydicom, SimpleITK [1, -1, -128, 127]   DICOMSDL [1, 255, 128, 127]
#   int16 in 12 bits    pydicom, SimpleITK [1, -1, -2048, 2047] DICOMSDL [1, 4095, 2048, 2047]
#   int16 in 16 bits    pydicom, SimpleITK [1, -1, -2048, 2047] DICOMSDL [1, -1, -2048, 2047]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install dicomsdl==0.109.4 pydicom==3.0.2 SimpleITK==2.5.7 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import dicomsdl
import numpy as np
import pydicom
import SimpleITK
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


def write(name, pixels, stored):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SECONDARY_CAPTURE
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file = FileDataset(name, {}, file_meta=meta, preamble=bytes(128))
    file.SOPClassUID, file.SOPInstanceUID = SECONDARY_CAPTURE, meta.MediaStorageSOPInstanceUID
    file.StudyInstanceUID, file.SeriesInstanceUID = generate_uid(), generate_uid()
    file.Rows, file.Columns = pixels.shape
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
    file.BitsAllocated = 8 * pixels.itemsize
    file.BitsStored, file.HighBit = stored, stored - 1
    file.PixelRepresentation = int(pixels.dtype.kind == "i")
    mask = np.array(2**stored - 1, f"u{pixels.itemsize}")
    file.PixelData = (pixels.view(mask.dtype) & mask).tobytes()
    file["PixelData"].VR = "OW" if pixels.itemsize > 1 else "OB"
    file.save_as(name, enforce_file_format=True)


for dtype, stored, numbers, seen in (
    ("uint32", 32, [1, 70000, 3, 4], [1, 0, 4464, 1]),
    ("int32", 32, [1, -1, -2, 4], [1, 0, -1, -1]),
    ("int8", 8, [1, -1, -128, 127], [1, 255, 128, 127]),
    ("int16", 12, [1, -1, -2048, 2047], [1, 4095, 2048, 2047]),
    ("int16", 16, [1, -1, -2048, 2047], [1, -1, -2048, 2047]),
):
    name = f"{dtype}-{stored}.dcm"
    write(name, np.array(numbers, dtype).reshape(2, 2), stored)
    right = pydicom.dcmread(name).pixel_array.ravel().tolist()
    assert right == SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(name)).ravel().tolist() == numbers
    found = dicomsdl.open(name).pixelData(storedvalue=True).ravel().tolist()
    print(f"{f'{dtype} in {stored} bits':19} pydicom, SimpleITK {right!s:20} DICOMSDL {found}")
    assert found == seen
PYTHON
