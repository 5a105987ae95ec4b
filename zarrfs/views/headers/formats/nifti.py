"""NIfTI-1, and NIfTI-2 if an axis is longer than 32767: https://nifti.nimh.nih.gov.

nibabel, ITK, FSL, AFNI and SPM read it. Its fastest axis is the first one.
"""

from __future__ import annotations

import struct
from functools import partial

from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import Form, Plan
from zarrfs.views.headers.text import ascii_text

# Code of the data type.
TYPES = {
    "b1": 2,
    "u1": 2,
    "i2": 4,
    "i4": 8,
    "f4": 16,
    "c8": 32,
    "f8": 64,
    "i1": 256,
    "u2": 512,
    "u4": 768,
    "i8": 1024,
    "u8": 1280,
    "c16": 1792,
}
_MOST_AXES = 7
_LONGEST = 32767
# Code of the unit, and the number of these units in one named unit.
_UNITS = {
    **dict.fromkeys(("m", "meter", "metre", "meters"), (1, 1.0)),
    **dict.fromkeys(("mm", "millimeter", "millimetre", "millimeters"), (2, 1.0)),
    **dict.fromkeys(("um", "µm", "μm", "micron", "micrometer", "micrometre"), (3, 1.0)),
    **dict.fromkeys(("nm", "nanometer", "nanometre"), (3, 1e-3)),
    **dict.fromkeys(("angstrom", "Å"), (3, 1e-4)),
}
_TIMES = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), (8, 1.0)),
    **dict.fromkeys(("ms", "millisecond"), (16, 1.0)),
    **dict.fromkeys(("us", "µs", "microsecond"), (24, 1.0)),
    **dict.fromkeys(("min", "minute"), (8, 60.0)),
}
_SCANNER = 1


def nii(array: Described) -> Plan:
    """Two to seven axes; an axis of channels becomes the fifth."""
    code = array.type_in(TYPES, "NIfTI")
    array.check("NIfTI", 2, _MOST_AXES)
    return partial(_form, array, code)


def _form(array: Described, code: int) -> Form:
    axes = list(array.axes[::-1])
    if len(axes) == 4 and axes[3].is_channel:
        # The fourth axis is that of time.
        axes.insert(3, Axis(1))
    lengths = [axis.length for axis in axes] + [1] * (_MOST_AXES - len(axes))
    units, factors = _units(axes)
    spacings = [(axis.spacing or 1.0) * f for axis, f in zip(axes, factors, strict=True)]
    spacings += [1.0] * (_MOST_AXES - len(spacings))
    origins = [axis.origin * f for axis, f in zip(axes, factors, strict=True)][:3]
    origins += [0.0] * (3 - len(origins))
    rows = [[0.0] * i + [spacings[i]] + [0.0] * (2 - i) + [origins[i]] for i in range(3)]
    affine = [number for row in rows for number in row]
    if not all(abs(number) < 3e38 for number in (*spacings, *affine)):
        spacings, affine = [1.0] * 7, [float(i % 5 == 0) for i in range(12)]
    dim = [len(axes), *lengths]
    pixdim = [1.0, *spacings]
    bits = array.data_type.item_size * 8
    name = ascii_text(array.name, 79).encode()
    end = ">" if array.big else "<"
    first = max(lengths) <= _LONGEST
    pack = _first if first else _second
    header = pack(end, (code, bits), dim, pixdim, units, affine, name)
    return Form(header, array.layout)


def _units(axes: list[Axis]) -> tuple[int, list[float]]:
    """Code of the units of space and time, and the factor for each axis."""
    space, factor = next((_UNITS[axis.unit] for axis in axes[:3] if axis.unit in _UNITS), (0, 1.0))
    time, time_factor = _TIMES.get(axes[3].unit, (0, 1.0)) if len(axes) > 3 else (0, 1.0)
    factors = [factor] * 3 + [time_factor] + [1.0] * _MOST_AXES
    return space | time, factors[: len(axes)]


def _first(
    end: str,
    kind: tuple[int, int],
    dim: list[int],
    pixdim: list[float],
    units: int,
    affine: list[float],
    name: bytes,
) -> bytes:
    header = bytearray(352)
    struct.pack_into(end + "i", header, 0, 348)
    struct.pack_into(end + "c", header, 38, b"r")
    struct.pack_into(end + "8h", header, 40, *dim)
    struct.pack_into(end + "hh", header, 70, *kind)
    struct.pack_into(end + "8f", header, 76, *pixdim)
    # The offset of the elements, and a scaling that leaves them unchanged.
    struct.pack_into(end + "fff", header, 108, 352.0, 1.0, 0.0)
    header[123] = units
    struct.pack_into("80s", header, 148, name)
    struct.pack_into(end + "hh", header, 252, 0, _SCANNER)
    struct.pack_into(end + "12f", header, 280, *affine)
    header[344:348] = b"n+1\0"
    return bytes(header)


def _second(
    end: str,
    kind: tuple[int, int],
    dim: list[int],
    pixdim: list[float],
    units: int,
    affine: list[float],
    name: bytes,
) -> bytes:
    header = bytearray(544)
    struct.pack_into(end + "i", header, 0, 540)
    header[4:12] = b"n+2\0\r\n\x1a\n"
    struct.pack_into(end + "hh", header, 12, *kind)
    struct.pack_into(end + "8q", header, 16, *dim)
    struct.pack_into(end + "8d", header, 104, *pixdim)
    struct.pack_into(end + "q", header, 168, 544)
    struct.pack_into(end + "dd", header, 176, 1.0, 0.0)
    struct.pack_into("80s", header, 240, name)
    struct.pack_into(end + "ii", header, 344, 0, _SCANNER)
    struct.pack_into(end + "12d", header, 400, *affine)
    struct.pack_into(end + "i", header, 500, units)
    return bytes(header)
