#!/usr/bin/env bash
# daikon reads -5 of a DICOM image as 4091 if 12 bits are stored, and scales all frames as the first one.
#
# Versions: daikon 1.2.46 (npm; seen with Node.js 20), pydicom 3.0.2, numpy 2.5.5.
# Behaviour: DICOM says with "Bits Stored" how many bits of a pixel are the number; the sign of a signed one is the highest
# of these. daikon masks the other bits away, and then reads a sign in bit 16, where it just put a 0: all negative pixels
# become positive. In images of several frames each frame may have a slope and an intercept of its own, as MR
# scanners write them. daikon applies those of the first frame to all frames. Signed pixels of 16 bits and one scale for all
# are right. It gives no error.
# Expected before the run: what pydicom reads, times the slope of the frame, plus its intercept.
# Output seen:
#   16 of 16 bits             right [-5, -4, 0, 7]              daikon [-5, -4, 0, 7]
#   12 of 16 bits             right [-5, -4, 0, 7]              daikon [4091, 4092, 0, 7]
#   one scale                 right [10, 11, 12, 13, 30, 31]    daikon [10, 11, 12, 13, 30, 31]
#   a scale for each frame    right [10, 11, 12, 46, 80, 82]    daikon [10, 11, 12, 13, 30, 31]
set -euo pipefail
command -v npm >/dev/null || { echo "npm is needed" >&2; exit 1; }
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pydicom==3.0.2 numpy==2.5.5
cd "$folder"
npm install --silent --no-fund --no-audit daikon@1.2.46 >/dev/null
venv/bin/python -I -W ignore - <<'PYTHON'
import json

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import EnhancedMRImageStorage, ExplicitVRLittleEndian, generate_uid


def scale(slope, intercept):
    item = Dataset()
    item.RescaleSlope, item.RescaleIntercept, item.RescaleType = slope, intercept, "US"
    group = Dataset()
    group.PixelValueTransformationSequence = [item]
    return group


def write(name, frames, bits, scales):
    image = Dataset()
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID = EnhancedMRImageStorage
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID = generate_uid()
    image.Modality, image.PhotometricInterpretation, image.SamplesPerPixel = "MR", "MONOCHROME2", 1
    image.NumberOfFrames, image.Rows, image.Columns = frames.shape
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, bits, bits - 1, 1
    shared = len(scales) == 1
    image.SharedFunctionalGroupsSequence = [scale(*scales[0]) if shared else Dataset()]
    pairs = np.resize(scales, (len(frames), 2)).tolist()
    image.PerFrameFunctionalGroupsSequence = [Dataset() if shared else scale(*pair) for pair in pairs]
    image.PixelData = (frames & (2**bits - 1)).astype("<u2").tobytes()
    image["PixelData"].VR = "OW"
    image.save_as(f"{name}.dcm", enforce_file_format=True)
    pixels = pydicom.dcmread(f"{name}.dcm").pixel_array.reshape(frames.shape)
    assert (pixels == frames).all()
    right = np.stack([slope * frame + intercept for frame, (slope, intercept) in zip(pixels, pairs)])
    with open(f"{name}.json", "w") as file:
        json.dump(right.astype(int).ravel().tolist(), file)


signs = np.array([[[-5, -4], [0, 7]]])
series = np.array([[[0, 1, 2]], [[3, 20, 21]]])
write("16 of 16 bits", signs, 16, [(1, 0)])
write("12 of 16 bits", signs, 12, [(1, 0)])
write("one scale", series, 16, [(1, 10)])
write("a scale for each frame", series, 16, [(1, 10), (2, 40)])
PYTHON
cat > read.cjs <<'JAVASCRIPT'
const assert = require("node:assert");
const fs = require("node:fs");
const daikon = require("daikon");

const shown = (row) => `[${row.join(", ")}]`;

for (const [name, seen] of [
  ["16 of 16 bits", [-5, -4, 0, 7]],
  ["12 of 16 bits", [4091, 4092, 0, 7]],
  ["one scale", [10, 11, 12, 13, 30, 31]],
  ["a scale for each frame", [10, 11, 12, 13, 30, 31]],
]) {
  const image = daikon.Series.parseImage(new DataView(new Uint8Array(fs.readFileSync(`${name}.dcm`)).buffer));
  const right = JSON.parse(fs.readFileSync(`${name}.json`));
  const found = Array.from(image.getInterpretedData(true));
  console.log(`${name.padEnd(25)} right ${shown(right).padEnd(27)} daikon ${shown(found)}`);
  assert.deepEqual(found, seen);
}
JAVASCRIPT
node read.cjs
