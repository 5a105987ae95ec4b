"""MRC2014, of electron microscopy: https://www.ccpem.ac.uk/mrc_format/mrc2014.php."""

from __future__ import annotations

import struct
from functools import partial

from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Plan
from zarrfs.views.headers.text import ascii_text

# Mode.
TYPES = {"i1": 0, "i2": 1, "f4": 2, "c8": 4, "u2": 6, "f2": 12}
_ANGSTROMS = {
    **dict.fromkeys(("angstrom", "Å", "A"), 1.0),
    **dict.fromkeys(("nm", "nanometer", "nanometre"), 10.0),
    **dict.fromkeys(("um", "µm", "μm", "micrometer", "micrometre", "micron"), 1e4),
    **dict.fromkeys(("mm", "millimeter", "millimetre"), 1e7),
}
_VERSION = 20140


def mrc(array: Described) -> Plan:
    """An image, or a volume."""
    mode = array.type_in(TYPES, "MRC")
    array.check("MRC", 2, 3)
    return partial(_form, array, mode)


def _form(array: Described, mode: int) -> Form:
    axes = array.axes[::-1]
    lengths = [*(axis.length for axis in axes), 1][:3]
    scales = [(axis.spacing or 1.0) * _ANGSTROMS.get(axis.unit, 1.0) * axis.length for axis in axes]
    cell = [scale if 0 < scale < 3e38 else 1.0 for scale in (*scales, 1.0)][:3]
    end = ">" if array.big else "<"
    header = bytearray(1024)
    struct.pack_into(end + "4i", header, 0, *lengths, mode)
    struct.pack_into(end + "3i", header, 28, *lengths)
    struct.pack_into(end + "6f", header, 40, *cell, 90.0, 90.0, 90.0)
    struct.pack_into(end + "3i", header, 64, 1, 2, 3)
    # Minimum above maximum, and a mean below both: they are not known.
    struct.pack_into(end + "3f", header, 76, 0.0, -1.0, -2.0)
    # Space group 0 is an image, 1 a volume.
    struct.pack_into(end + "2i", header, 88, int(len(axes) == 3), 0)
    struct.pack_into(end + "i", header, 108, _VERSION)
    header[208:212] = b"MAP "
    header[212:216] = b"\x11\x11\0\0" if array.big else b"\x44\x44\0\0"
    struct.pack_into(end + "f", header, 216, -1.0)
    struct.pack_into(end + "i", header, 220, 1)
    struct.pack_into("80s", header, 224, ascii_text(array.name, 80).encode())
    return Form(bytes(header), array.layout)
