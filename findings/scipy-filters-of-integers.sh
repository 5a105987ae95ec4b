#!/usr/bin/env bash
# SciPy filters the ends of a recording in int16 wrongly, and wiener turns pixels of a photograph to -643.
#
# Versions: scipy 1.18.1, numpy 2.5.5.
# Behaviour: `filtfilt`, `sosfiltfilt` and `decimate` first extend the signal at both ends by twice the last sample minus its
# neighbours, and compute that in the type of the signal. Recorders write int16: 28000 twice minus -20000 wraps, and the
# filter rings into the recording. `wiener` squares the signal in its type. The result is float64 in all cases, so nothing
# shows it, and nothing warns. `savgol_filter`, `detrend`, `resample_poly` and `welch` are right. Libraries that pass their
# samples on have the same: dascore 0.1.24, for recordings of glass fibres, with `Patch.decimate`.
# Expected before the run: what the same samples give as floats, as the result is one of floats.
# Output seen (400 samples in int16 of a wave of 28000; an image in uint8 of 72 to 215):
#   filtfilt        52 of 400 samples wrong, the first 31141.1 for 27992.5
#   sosfiltfilt     52 of 400 samples wrong, the first 31141.1 for 27992.5
#   decimate       103 of 200 samples wrong, the first 33917.6 for 27662.1
#   wiener         202 of 400 samples wrong, the first 11796.3 for 24642.9
#   savgol_filter    0 of 400 samples wrong
#   wiener of uint8: from -643.9 to 163.4, of the same image as floats from 92.0 to 180.3
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install scipy==1.18.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
from scipy import signal

recording = np.round(28000 * np.cos(np.arange(400) / 4)).astype("i2")
b, a = signal.butter(4, 0.3)
sections = signal.butter(4, 0.3, output="sos")
for name, filtered, wrong, first in (
    ("filtfilt", lambda x: signal.filtfilt(b, a, x), 52, "31141.1 for 27992.5"),
    ("sosfiltfilt", lambda x: signal.sosfiltfilt(sections, x), 52, "31141.1 for 27992.5"),
    ("decimate", lambda x: signal.decimate(x, 2), 103, "33917.6 for 27662.1"),
    ("wiener", lambda x: signal.wiener(x, 5), 202, "11796.3 for 24642.9"),
    ("savgol_filter", lambda x: signal.savgol_filter(x, 5, 2), 0, None),
):
    found, true = filtered(recording), filtered(recording.astype("f8"))
    count = int((abs(found - true) > 1).sum())
    ends = f"{found[0]:.1f} for {true[0]:.1f}"
    print(f"{name:14} {count:3} of {len(found)} samples wrong" + (f", the first {ends}" if first else ""))
    assert count == wrong and found.dtype == true.dtype == "float64" and first in (None, ends)

image = np.random.default_rng(0).normal(150, 20, (64, 64)).clip(0, 255).astype("u1")
found, true = (signal.wiener(pixels, 5) for pixels in (image, image.astype("f8")))
ranges = [f"{number:.1f}" for array in (found, true) for number in (array.min(), array.max())]
print("wiener of uint8: from {} to {}, of the same image as floats from {} to {}".format(*ranges))
assert ranges == ["-643.9", "163.4", "92.0", "180.3"]
PYTHON
