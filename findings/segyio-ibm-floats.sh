#!/usr/bin/env bash
# segyio reads 1 as 524288.5 if an IBM float has leading zeros; ObsPy writes 3e37 as 0.
#
# Versions: segyio 1.9.14, obspy 1.5.1, segy 0.6.2 (of the makers of MDIO), numpy 2.4.6.
# Behaviour: SEG-Y files hold IBM floats, whose exponent counts in powers of 16. The fraction may have leading
# zeros: 0x46000001 is 1, and 0x41000000 is zero. ObsPy and segy read both. segyio supposes a digit in front:
# such a zero becomes 0.5, and 1 becomes 524288.5. Numbers without leading zeros, as libraries write them,
# are right. In the other direction ObsPy writes 3e37 and larger numbers as 0, though IBM floats reach 7e75.
# segyio writes them right. Nothing warns.
# One would expect: three readers read the same, as all say that they read IBM floats.
# Output seen:
#   0x42640000       100.0  segyio 100.0       obspy 100.0  segy 100.0
#   0x41000000         0.0  segyio 0.5         obspy 0.0    segy 0.0
#   0x46000001         1.0  segyio 524288.5    obspy 1.0    segy 1.0
#   0x42080000         8.0  segyio 12.0        obspy 8.0    segy 8.0
#   written by ObsPy   [1.0, 1e+37, 0.0]
#   written by segyio  [1.0, 1e+37, 3e+37]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install segyio==1.9.14 obspy==1.5.1 segy==0.6.2 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
from pathlib import Path

import numpy as np
import segyio
from obspy import Stream, Trace
from obspy.io.segy.segy import _read_segy
from segy.ibm import ibm2ieee


def ieee(words):
    """By the definition of IBM floats; none here has a sign."""
    return [(word & 0xFFFFFF) / 2**24 * 16.0 ** ((word >> 24) - 64) for word in words]


def write_with_obspy(name, values):
    trace = Trace(np.array(values, "f4"))
    trace.stats.delta = 0.002
    Stream([trace]).write(name, format="SEGY", data_encoding=1)


def stored(name, count):
    return [int(word) for word in np.frombuffer(Path(name).read_bytes()[-4 * count :], ">u4")]


words = [0x42640000, 0x41000000, 0x46000001, 0x42080000]
write_with_obspy("a.sgy", [0] * len(words))
content = Path("a.sgy").read_bytes()
Path("a.sgy").write_bytes(content[: -4 * len(words)] + np.array(words, ">u4").tobytes())
right = ieee(words)
with segyio.open("a.sgy", ignore_geometry=True) as file:
    by_segyio = file.trace[0].tolist()
by_obspy = _read_segy("a.sgy").traces[0].data.tolist()
by_segy = ibm2ieee(np.array(words, "u4")).tolist()
for word, value, one, two, three in zip(words, right, by_segyio, by_obspy, by_segy, strict=True):
    print(f"{word:#010x} {value:11}  segyio {one:<10}  obspy {two:<5}  segy {three}")
assert by_obspy == by_segy == right == [100, 0, 1, 8]
assert by_segyio == [100, 0.5, 524288.5, 12]

values = [1.0, 1e37, 3e37]
write_with_obspy("b.sgy", values)
spec = segyio.spec()
spec.samples, spec.format, spec.tracecount = [0, 2, 4], 1, 1
with segyio.create("c.sgy", spec) as file:
    file.trace[0] = np.array(values, "f4")
for name, title, last in (("b.sgy", "ObsPy ", 0), ("c.sgy", "segyio", 3e37)):
    found = [float(f"{value:.4g}") for value in ieee(stored(name, 3))]
    print(f"written by {title}  {found}")
    assert found == [1, 1e37, last]
PYTHON
