#!/usr/bin/env bash
# hdmf stores the list 0, 0.25, -0.5 as 0, 0, 0 in NWB files, in HDF5 and in Zarr, because its first number is an integer.
#
# Versions: pynwb 4.2.0, hdmf 6.2.0, hdmf-zarr 0.14.0, h5py 3.16.0, zarr 3.4.2, numpy 2.5.5.
# Behaviour: pynwb and hdmf take lists, and rows of tables one by one. They take the type of all elements from the first one, and
# each later one is cut to it: the score of the first trial, 1, makes 0 of 0.7. After False, each other number is True.
# Scalars of NumPy wrap: after a uint8, 300 is 44. If the first is 1.0, or the list is made an array before, all is right. Columns
# that the schema of NWB says are floats, such as times of trials, are refused as integers. There is no warning.
# Expected before the run: the numbers of np.array of the list, or a refusal.
# Output seen (both files have the same):
#   series [0, 0.25, -0.5]                    [0, 0, 0]
#   series [0.0, 0.25, -0.5]                  [0.0, 0.25, -0.5]
#   series np.array([0, 0.25, -0.5])          [0.0, 0.25, -0.5]
#   series [[0, 0.5], [1.5, 2]]               [[0, 0], [1, 2]]
#   series of uint8(1), int16(300), int16(-5) [1, 44, 251]
#   trials, score 1, 0.7, 2.5                 [1, 0, 2]
#   trials, score False, 2, -1                [False, True, True]
#   units, quality 0, 0.95, 0.99              [0, 0, 0]
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install pynwb==4.2.0 hdmf==6.2.0 hdmf-zarr==0.14.0 h5py==3.16.0 zarr==3.4.2 numpy==2.5.5
cd "$folder"
venv/bin/python -I - <<'PYTHON'
import warnings
from datetime import datetime, timezone

import numpy as np
from hdmf_zarr import NWBZarrIO
from pynwb import NWBHDF5IO, NWBFile, TimeSeries


def series(data):
    return lambda file: file.add_acquisition(TimeSeries(name="series", data=data, unit="V", rate=1.0))


def trials(scores):
    def add(file):
        file.add_trial_column("score", "of the trial")
        for second, score in enumerate(scores):
            file.add_trial(start_time=float(second), stop_time=second + 0.5, score=score)

    return add


def units(qualities):
    def add(file):
        file.add_unit_column("quality", "of the unit")
        for quality in qualities:
            file.add_unit(spike_times=[0.5, 1.5], quality=quality)

    return add


def stored(add, kind, name, read):
    file = NWBFile("a session", name, datetime(2026, 1, 1, tzinfo=timezone.utc))
    add(file)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with kind(name, mode="w") as writer:
            writer.write(file)
    assert not [str(one.message) for one in heard if "Consolidated metadata" not in str(one.message)]
    with kind(name, mode="r") as reader:
        return np.asarray(read(reader.read())).tolist()


def values(file):
    return file.acquisition["series"].data[:]


def scores(file):
    return file.trials["score"][:]


mixed = [np.uint8(1), np.int16(300), np.int16(-5)]
for number, (name, add, read, seen) in enumerate(
    (
        ("series [0, 0.25, -0.5]", series([0, 0.25, -0.5]), values, [0, 0, 0]),
        ("series [0.0, 0.25, -0.5]", series([0.0, 0.25, -0.5]), values, [0.0, 0.25, -0.5]),
        ("series np.array([0, 0.25, -0.5])", series(np.array([0, 0.25, -0.5])), values, [0.0, 0.25, -0.5]),
        ("series [[0, 0.5], [1.5, 2]]", series([[0, 0.5], [1.5, 2]]), values, [[0, 0], [1, 2]]),
        ("series of uint8(1), int16(300), int16(-5)", series(mixed), values, [1, 44, 251]),
        ("trials, score 1, 0.7, 2.5", trials([1, 0.7, 2.5]), scores, [1, 0, 2]),
        ("trials, score False, 2, -1", trials([False, 2, -1]), scores, [False, True, True]),
        ("units, quality 0, 0.95, 0.99", units([0, 0.95, 0.99]), lambda file: file.units["quality"][:], [0, 0, 0]),
    )
):
    found = [stored(add, kind, f"{number}.{end}", read) for kind, end in ((NWBHDF5IO, "nwb"), (NWBZarrIO, "zarr"))]
    assert str(found[0]) == str(found[1]) == str(seen), found
    print(f"{name:41} {found[0]}")
PYTHON
