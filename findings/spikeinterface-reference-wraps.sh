#!/usr/bin/env bash
# SpikeInterface turns a saturated sample of 32767 into -31769 when it subtracts a common reference of -1000.
#
# Versions: spikeinterface 0.105.3, numpy 2.5.5.
# Behaviour: amplifiers write int16, and artefacts of stimulation reach its ends. `common_reference` subtracts the median or
# the mean of all channels at each time, and stores the difference in int16, where it wraps: the largest positive
# deflection becomes a large negative one, which is what detectors of spikes look for. With `dtype="float32"` the median is
# right, but a reference to one channel still wraps, and then becomes a float. `rectify` leaves -32768 as it is. Nothing warns.
# Expected before the run: 33767, or the end of the range.
# Output seen (a channel at 32767 or -32768 among three at -1000 or 1000):
#   global median     int16 [-31769, 31768]  float32 [33767.0, -33768.0]
#   one channel       int16 [-31769, 31768]  float32 [-31769.0, 31768.0]
#   rectify           int16 [32767, -32768]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install spikeinterface==0.105.3 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import spikeinterface
from spikeinterface import preprocessing

samples = np.array([[32767, -1000, -1000, -1000], [-32768, 1000, 1000, 1000]], "i2")
recording = spikeinterface.NumpyRecording([samples], sampling_frequency=1000)
last = {"reference": "single", "ref_channel_ids": [recording.channel_ids[-1]]}
for name, options, seen in (("global median", {}, [33767, -33768]), ("one channel", last, [-31769, 31768])):
    narrow, wide = (
        preprocessing.common_reference(recording, dtype=dtype, **options).get_traces()[:, 0] for dtype in (None, "float32")
    )
    print(f"{name:16}  {narrow.dtype} {narrow.tolist()}  {wide.dtype} {wide.tolist()}")
    assert narrow.dtype == "int16" and narrow.tolist() == [-31769, 31768]
    assert wide.dtype == "float32" and wide.tolist() == seen
rectified = preprocessing.rectify(recording).get_traces()[:, 0]
print(f"{'rectify':16}  {rectified.dtype} {rectified.tolist()}")
assert rectified.dtype == "int16" and rectified.tolist() == [32767, -32768]
PYTHON
