"""The axes of a TIFF's planes, for ImageJ and for tifffile.

ImageJ reads ``images=N`` planes in a row from the first one, whatever the directories say, and
takes time, then depth, then channels for their order. The form is true for such stacks only. All
others are stacks of planes in their own order, whose shape and axes tifffile reads from JSON.

https://imagej.net/ij/source/ij/io/TiffEncoder.java, https://github.com/cgohlke/tifffile
"""

from __future__ import annotations

import json
import math
import struct

from zarrfs.views.facts.facts import Axis, Role
from zarrfs.views.facts.text import ascii_text, digits
from zarrfs.views.facts.units import metres, ratio, seconds
from zarrfs.views.headers.described import Described

_TYPES = ("u1", "u2", "f4")
# ImageJ's order of the axes of a stack, slowest first, and its names for them.
_FIELDS: dict[Role, str] = {"time": "frames", "z": "slices", "channel": "channels"}
_ORDER = list(_FIELDS)
_LETTERS: dict[Role, str] = {"time": "T", "z": "Z", "channel": "C", "y": "Y", "x": "X"}
_UNITS = {1e-6: "um", 1e-9: "nm", 1e-3: "mm", 1e-2: "cm", 1.0: "m", 1e-10: "A", 0.0254: "inch"}
_MOST_NAMES = 10_000
_LARGEST_NAMES = 256 << 10


def is_imagej(array: Described) -> bool:
    """Whether the planes lie as ImageJ reads them in a row."""
    return _roles(array) is not None


def _roles(array: Described) -> list[Role] | None:
    """The roles of the outer axes in ImageJ's order; None if ImageJ has others."""
    axes = array.image_axes
    if array.code not in _TYPES or not _plane_is_known(axes[-2:]):
        return None
    outer = axes[:-2]
    if len(outer) == 1 and not outer[0].name:
        return ["z"]
    roles = [axis.role for axis in outer]
    if len(set(roles)) < len(roles) or not set(roles) <= set(_ORDER):
        return None
    # An axis of one element lies anywhere.
    long = [_ORDER.index(axis.role) for axis in outer if axis.length > 1]
    return roles if long == sorted(long) else None


def _plane_is_known(plane: tuple[Axis, ...]) -> bool:
    """Whether lines and columns are y and x, or have no names."""
    roles = [axis.role for axis in plane]
    return roles == ["y", "x"] or not any(axis.name for axis in plane)


def description(array: Described) -> bytes:
    """The text of the first directory."""
    roles = _roles(array)
    if roles is None:
        return _shaped(array)
    axes = array.image_axes
    outer = dict(zip(roles, axes[:-2], strict=True))
    lines = ["ImageJ=1.53t", f"images={math.prod(axis.length for axis in axes[:-2])}"]
    # ImageJ's own order of these lines.
    lines += [f"{_FIELDS[role]}={outer[role].length}" for role in reversed(_ORDER) if role in outer]
    if len(outer) > 1:
        lines.append("hyperstack=true")
    composite = "channel" in outer and any(c.colour for c in array.facts.channels)
    lines.append(f"mode={'composite' if composite else 'grayscale'}")
    lines += _places(outer.get("z"), axes[-2], axes[-1])
    time = outer.get("time", Axis(1))
    unit = seconds(time.unit)
    if time.spacing is not None and unit is not None:
        # In seconds, as ImageJ has it without a unit.
        lines.append(f"finterval={digits(time.size * unit)}")
    windows = [channel.window for channel in array.facts.channels]
    if len(windows) == 1 and windows[0] is not None and not array.channels:
        lines += [f"min={digits(windows[0][0])}", f"max={digits(windows[0][1])}"]
    return ("\n".join(lines) + "\n\0").encode()


def _places(z: Axis | None, y: Axis, x: Axis) -> list[str]:
    """Unit, depth of a slice, and the element at the origin of the unit's coordinates."""
    if x.spacing is None:
        return []
    lines = []
    unit = ascii_text(_UNITS.get(metres(x.unit) or 0.0, x.unit), 16)
    if unit and unit.isalpha():
        lines.append(f"unit={unit}")
    for name, axis in (("x", x), ("y", y), ("z", z)):
        if axis is None or axis.spacing is None:
            continue
        if name == "z" and (depth := _in_unit(axis, x)) is not None:
            lines.append(f"spacing={digits(abs(depth))}")
        if axis.origin and not axis.falls:
            lines.append(f"{name}origin={digits(-axis.origin / axis.spacing)}")
    return lines


def _in_unit(axis: Axis, of: Axis) -> float | None:
    """The spacing of an axis in the unit of another; None if it has none."""
    if axis.spacing is None or axis.unit == of.unit:
        return axis.spacing
    mine, other = metres(axis.unit), metres(of.unit)
    return None if mine is None or other is None else axis.spacing * ratio(mine, other)


def _shaped(array: Described) -> bytes:
    letters = [_LETTERS.get(axis.role, "") for axis in array.axes]
    if array.channels:
        letters[-1] = "S"
    said: dict[str, object] = {"shape": array.shape}
    if all(letters) and len(set(letters)) == len(letters):
        said["axes"] = "".join(letters)
    return json.dumps(said).encode() + b"\0"


def plane_names(array: Described) -> tuple[list[int], bytes] | None:
    """ImageJ's metadata about channels: lengths of the parts, and the parts; None without any.

    Names of planes, ranges of values, and colours.
    """
    roles = _roles(array)
    channels = array.facts.channels
    if roles is None or "channel" not in roles or not channels:
        return None
    planes = math.prod(axis.length for axis in array.image_axes[:-2])
    parts: list[tuple[bytes, list[bytes]]] = []
    end = ">" if array.big else "<"
    names = array.band_names(planes) if planes <= _MOST_NAMES else None
    if names is not None:
        encoding = "utf-16-be" if array.big else "utf-16-le"
        labels = [name.encode(encoding, "replace") for name in names]
        if sum(map(len, labels)) <= _LARGEST_NAMES:
            parts.append((b"labl", labels))
    windows = [channel.window for channel in channels if channel.window is not None]
    if len(windows) == len(channels):
        numbers = [number for window in windows for number in window]
        parts.append((b"rang", [struct.pack(f"{end}{len(numbers)}d", *numbers)]))
    colours = [channel.colour for channel in channels if channel.colour is not None]
    if len(colours) == len(channels):
        parts.append((b"luts", [_lut(colour) for colour in colours]))
    if not parts:
        return None
    head = b"IJIJ" if array.big else b"JIJI"
    for kind, values in parts:
        head += (kind if array.big else kind[::-1]) + struct.pack(end + "I", len(values))
    data = [value for _, values in parts for value in values]
    return [len(head), *map(len, data)], b"".join([head, *data])


def _lut(colour: tuple[int, int, int]) -> bytes:
    """From black to the colour, in 256 steps of red, of green and of blue."""
    return b"".join(bytes(part * step // 255 for step in range(256)) for part in colour)
