"""MRC2014, of electron microscopy: https://www.ccpem.ac.uk/mrc_format/mrc2014.php."""

from __future__ import annotations

import struct
from functools import partial

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.text import ascii_text
from zarrfs.views.facts.units import metres
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.space import directions, is_spatial

_VERSION = 20140
_IMOD = 1146047817


def mrc(array: Described) -> Plan:
    """An image, or a volume."""
    mode = int(array.check("MRC", 2, 3))
    if array.channels:
        raise Inexpressible("MRC has no elements of several channels")
    return partial(_form, array, mode)


def _form(array: Described, mode: int) -> Form:
    axes = list(array.axes[::-1])
    lengths = [*(axis.length for axis in axes), 1][:3]
    # Images in a row are not a volume: then the third axis has no place in the cell.
    volume = len(axes) == 3 and all(map(is_spatial, axes))
    placed = axes if volume else axes[:2]
    sampling, cell, origin = [1, 1, 1], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    places = directions(placed)
    for axis, place in zip(placed, places, strict=True):
        sampling[place] = axis.length
        cell[place], origin[place] = _angstroms(axis)
    end = ">" if array.big else "<"
    header = bytearray(1024)
    struct.pack_into(end + "4i", header, 0, *lengths, mode)
    struct.pack_into(end + "3i", header, 28, *sampling)
    struct.pack_into(end + "6f", header, 40, *cell, 90.0, 90.0, 90.0)
    struct.pack_into(end + "3i", header, 64, *(place + 1 for place in (*places, 2)[:3]))
    # Minimum above maximum, and a mean below both: they are not known.
    struct.pack_into(end + "3f", header, 76, 0.0, -1.0, -2.0)
    # Space group 0 is an image or a stack of images, 1 a volume.
    struct.pack_into(end + "2i", header, 88, int(volume), 0)
    struct.pack_into(end + "i", header, 108, _VERSION)
    if array.code == "i1":
        # IMOD's stamp, and its flag for bytes with a sign.
        struct.pack_into(end + "2i", header, 152, _IMOD, 1)
    struct.pack_into(end + "3f", header, 196, *origin)
    header[208:212] = b"MAP "
    header[212:216] = b"\x11\x11\0\0" if array.big else b"\x44\x44\0\0"
    struct.pack_into(end + "f", header, 216, -1.0)
    struct.pack_into(end + "i", header, 220, 1)
    struct.pack_into("80s", header, 224, ascii_text(array.name, 80).encode())
    return Form(bytes(header), array.layout)


def _angstroms(axis: Axis) -> tuple[float, float]:
    """Size of all elements, and origin; zeros if they are not known, or if places fall."""
    unit = metres(axis.unit)
    if axis.spacing is None or axis.falls or unit is None:
        return 0.0, 0.0
    size, origin = (n * unit * 1e10 for n in (axis.spacing * axis.length, axis.origin))
    return (size, origin) if size < 3e38 > abs(origin) else (0.0, 0.0)
