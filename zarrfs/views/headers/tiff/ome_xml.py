"""OME-XML: what an image is, for programs that read OME-TIFF.

https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zarrfs.views.facts.facts import Axis, Role
from zarrfs.views.facts.text import digits, plain, xml_attribute
from zarrfs.views.facts.units import metres, seconds
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Inexpressible

_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_OPEN = (
    f'<OME xmlns="{_NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{_NAMESPACE} {_NAMESPACE}/ome.xsd" Creator="zarrfs">'
)
_LETTERS: Mapping[Role, str] = {"z": "Z", "channel": "C", "time": "T"}
_LENGTHS = {1.0: "m", 0.1: "dm", 1e-2: "cm", 1e-3: "mm", 1e-6: "µm", 1e-9: "nm", 1e-12: "pm",
            1e-15: "fm", 1e-10: "Å", 1e3: "km", 0.0254: "in", 0.3048: "ft", 0.9144: "yd",
            1609.344: "mi"}  # fmt: skip
_TIMES = {1.0: "s", 1e-3: "ms", 1e-6: "µs", 1e-9: "ns", 60.0: "min", 3600.0: "h", 86400.0: "d"}
_MOST_CHANNELS = 10_000


def ome_xml(array: Described, name: str) -> str:
    """The description of the largest level of an image. Raises Inexpressible."""
    outer = _roles(array.image_axes[:-2])
    y, x = array.image_axes[-2:]
    samples = max(1, array.channels)
    found = dict(zip(outer, array.image_axes[:-2], strict=True))
    channels = found["channel"].length if "channel" in found else 1
    if channels > _MOST_CHANNELS or (samples > 1 and channels > 1):
        raise Inexpressible("OME-TIFF takes fewer channels")
    # The fastest axis comes first; axes that are missing have one element.
    order = [*reversed(outer), *(role for role in _LETTERS if role not in outer)]
    z, t = found.get("z", Axis(1)), found.get("time", Axis(1))
    said: dict[str, object] = {
        "ID": "Pixels:0",
        "DimensionOrder": "XY" + "".join(_LETTERS[role] for role in order),
        "Type": array.type_in("OME-TIFF"),
        "BigEndian": "false",
        "Interleaved": "true" if samples > 1 else "false",
        "SizeX": x.length,
        "SizeY": y.length,
        "SizeZ": z.length,
        "SizeC": channels * samples,
        "SizeT": t.length,
    }
    for letter, axis in (("X", x), ("Y", y), ("Z", z)):
        if axis.spacing is not None:
            said[f"PhysicalSize{letter}"] = digits(axis.size)
            # Without a unit it would be in micrometres.
            length = _LENGTHS.get(metres(axis.unit) or 0.0, "reference frame")
            said[f"PhysicalSize{letter}Unit"] = length
    if t.spacing is not None and (unit := _TIMES.get(seconds(t.unit) or 0.0)) is not None:
        said["TimeIncrement"] = digits(t.spacing)
        said["TimeIncrementUnit"] = unit
    planes = z.length * channels * t.length
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        _OPEN,
        f'<Image ID="Image:0" Name={xml_attribute(plain(name) or array.name)}>',
        f"<Pixels{_attributes(said)}>",
        *_channels(array, channels, samples),
        f'<TiffData IFD="0" PlaneCount="{planes}"/>',
        "</Pixels></Image></OME>",
    ]
    return "".join(parts)


def _roles(axes: Sequence[Axis]) -> list[Role]:
    """The role of each axis before y: depth, channel and time, each at most once.

    An axis of an unknown role takes one that is left. Raises Inexpressible.
    """
    roles = [axis.role for axis in axes]
    for i, role in enumerate(roles):
        free = [other for other in _LETTERS if other not in roles]
        if role == "" and free:
            roles[i] = free[0]
    if len(set(roles)) < len(roles) or not set(roles) <= _LETTERS.keys():
        raise Inexpressible("OME-TIFF takes axes of depth, channel and time, each at most once")
    return roles


def _channels(array: Described, count: int, samples: int) -> list[str]:
    """``samples`` : interleaved ones, which are one channel together."""
    known = array.facts.channels if samples == 1 else ()
    parts = []
    for i in range(count):
        said: dict[str, object] = {"ID": f"Channel:0:{i}"}
        if i < len(known):
            if known[i].name:
                said["Name"] = known[i].name
            if (colour := known[i].colour) is not None:
                red, green, blue = colour
                packed = red << 24 | green << 16 | blue << 8 | 255
                said["Color"] = packed - (1 << 32) if packed >= 1 << 31 else packed
        said["SamplesPerPixel"] = samples
        parts.append(f"<Channel{_attributes(said)}/>")
    return parts


def _attributes(said: Mapping[str, object]) -> str:
    return "".join(f" {name}={xml_attribute(value)}" for name, value in said.items())
