#!/usr/bin/env bash
# ObsPy resamples a big-endian SAC file to chance numbers, and draws an envelope of 13601 around a signal of 999309.
#
# Versions: obspy 1.5.1, scipy 1.18.1, numpy 2.5.5.
# Behaviour: ObsPy reads a SAC file with the byte order of the file. `resample()` then takes the bytes of such a trace for numbers
# of the machine's order: -544 becomes 4e-39, or NaN. Interpolation, filters and decimation of the same trace are right, and so
# is `resample()` after any of them. `envelope()` squares the samples in their own type, which for the counts of
# a digitizer is int32: squares from 46341 on wrap, and the envelope is smaller than the signal, or NaN. NumPy warns
# of the NaN alone.
# Expected before the run: the same as for float64, which is right.
# Output seen (sample 100 of the resampled traces):
#   SAC, little-endian  resample -543.5     interpolate -544
#   SAC, big-endian     resample 4.392e-39  interpolate -544
#   float64  signal 999309  envelope 1000456
#   int32    signal 999309  envelope 13601
#   int16    signal 9993  envelope 461
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install obspy==1.5.1 scipy==1.18.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import obspy
from obspy.signal.filter import envelope

wave = np.sin(np.arange(400) / 20)
resampled, found = {}, {}
for title, order in (("little", "<"), ("big", ">")):
    trace = obspy.Trace((1000 * wave).round().astype("f4"), {"delta": 0.01})
    trace.write("a.sac", format="SAC", byteorder=order)
    read = obspy.read("a.sac")[0]
    assert (read.data == trace.data).all()
    resampled[title] = f"{read.copy().resample(50).data[100]:.4g}"
    interpolated = f"{read.copy().interpolate(50).data[100]:.4g}"
    print(f"SAC, {title + '-endian':14} resample {resampled[title]:9}  interpolate {interpolated}")
    assert interpolated == "-544"
assert resampled == {"little": "-543.5", "big": "4.392e-39"}

for dtype, scale in (("float64", 1e6), ("int32", 1e6), ("int16", 1e4)):
    samples = (scale * wave).round().astype(dtype)
    found[dtype] = f"{envelope(samples)[282]:.0f}"
    print(f"{dtype:8} signal {samples[282]:.0f}  envelope {found[dtype]}")
assert found == {"float64": "1000456", "int32": "13601", "int16": "461"}
PYTHON
