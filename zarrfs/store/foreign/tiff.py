"""References to the tiles and strips of a TIFF file, found with tifffile."""

from __future__ import annotations

import io
import json
import math
import re
from contextlib import suppress
from importlib import import_module
from itertools import chain, product
from typing import Any

import numpy as np

from zarrfs.errors import reason_of
from zarrfs.store.foreign.found import Found, Refs, array_document, chunk_key, pieces
from zarrfs.store.foreign.hdf5_types import fill_value

_PHOTOMETRIC, _COLOUR_MAP = 262, 320
_SHORT = 3
"""TIFF's type of numbers of 16 bits."""
_RESOLUTION = {"X": 282, "Y": 283}
"""The tags with the number of pixels per unit."""
_NO_UNITS = {"", "pixel", "pixels", "reference frame"}
_ESCAPED = re.compile(r"\\u([0-2][0-9A-Fa-f]{3})")  # as ImageJ writes µ
_NO_DATA = 42113
"""The tag of GDAL with the value that marks missing elements."""
# Metadata beside the elements must not hide these.
_DAMAGED = (AttributeError, IndexError, KeyError, TypeError, ValueError)

_ENUMERATED = re.compile(r"<(\w+)\.(\w+): \d+> is not supported")
_ENDIAN = {"<": "little", ">": "big"}
_ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 6}}
# The TIFF compressions that zarrfs decodes, by their numbers.
_CODECS: dict[int, list[dict[str, Any]]] = {
    1: [],
    8: [_ZLIB],
    32946: [_ZLIB],
    34925: [{"name": "numcodecs.lzma", "configuration": {"format": 1}}],
    50000: [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
}


def references(path: str) -> Found:
    """One image as the root, several images as ``0``, ``1``, …; a pyramid as a group of its levels.

    An image that is not served among others has a note, and so have pages that are in no image.
    Raises ValueError if nothing is served.
    """
    found = Found()
    with import_module("tifffile").TiffFile(path) as file:
        count = len(file.series)
        if not count:
            raise ValueError("has no image")
        left = _left_out(file)
        described: list[Any] = []
        with suppress(Exception):  # whatever is in the text
            described = _described(file)
        for number in range(count):
            prefix = f"{number}/" if count > 1 or left else ""
            try:
                image = _image(file, number, described)
            except Exception as error:
                if not prefix:
                    raise
                found.note(str(number), reason_of(error))
                continue
            for key, value in image.items():
                found.refs[prefix + key] = [path, *value[1:]] if isinstance(value, list) else value
        if count > 1 or left:
            found.refs[".zgroup"] = json.dumps({"zarr_format": 2})
        if left:
            found.note("others", f"the file has {left} pages that belong to none of its images")
        _describe(found.refs, _tags(file))
    return found


def _left_out(file: Any) -> int:
    """How many pages of the file belong to no image."""
    used = {
        page.offset
        for series in file.series
        for level in series.levels
        for page in _pages(level)
        if page is not None
    }
    return sum(page.offset not in used for page in file.pages)


def _pages(level: Any) -> Any:
    """The pages of a level; of a small one that lies in one piece, the first of them.

    tifffile takes pages of the whole image for the others of a small level.
    """
    keyframe = level.keyframe
    small = level.dataoffset is not None and len(keyframe.treeindex) > 1
    return [keyframe] if small else level.pages


def _check_pages(file: Any, series: Any) -> None:
    """Raises ValueError if the file does not have all pages of an image."""
    for level in series.levels:
        for page in _pages(level):
            if page is None or page.parent.filehandle.path != file.filehandle.path:
                raise ValueError("some of its pages are in other files, or missing")
            first = page.keyframe  # the page that describes this one
            if int(first.fillorder) != 1:
                raise ValueError(f"fillorder {first.fillorder.name} is not served")
            if first.photometric == 6 and first.is_subsampled:
                raise ValueError("colours of fewer pixels than brightness are not served")
            if not first.is_tiled and not first.rowsperstrip:
                raise ValueError("its strips have no rows")
            if first.dtype is None or first.bitspersample != 8 * first.dtype.itemsize:
                raise ValueError(f"samples of {first.bitspersample} bits are not served")
            # Absent parts have neither.
            for at, size in zip(page.dataoffsets, page.databytecounts, strict=False):
                if bool(at) != bool(size):
                    what = "place" if size else "bytes"
                    raise ValueError(f"a strip or tile has no {what} in the file")


def _describe(refs: Refs, attributes: dict[str, Any], at: str = "") -> None:
    """Add attributes to the root, or to the level of this path."""
    if (key := f"{at}zarr.json") in refs:
        node = json.loads(refs[key])
        node["attributes"] = {**node["attributes"], **attributes}
    else:
        key = f"{at}.zattrs"
        node = {**json.loads(refs.get(key, "{}")), **attributes}
        if at and (names := node.get("_ARRAY_DIMENSIONS")):
            # tifffile gives axes of smaller levels a number.
            yx = [name for axis in "YX" for name in names if name[:1] == axis]
            node["spatial:dimensions"] = yx
    refs[key] = json.dumps(node, default=str)


def _image(file: Any, number: int, described: list[Any]) -> Refs:
    series = file.series[number]
    _check_pages(file, series)
    refs = _arrays(file, number)
    place: dict[str, Any] = {}
    with suppress(*_DAMAGED):
        _find_place(series.keyframe, place)
    sizes: dict[str, Any] = {}
    with suppress(*_DAMAGED, ZeroDivisionError):
        sizes = _sizes(file, number, described)
    several = len(series.levels) > 1
    for at, level in enumerate(series.levels):
        said = _placed(place, series.keyframe, level) | _spaced(sizes, series, level)
        with suppress(*_DAMAGED):
            _find_colours(level, said)
        _describe(refs, said, f"{at}/" if several else "")
    return refs


def _find_colours(level: Any, found: dict[str, Any]) -> None:
    """Add how elements stand for colours, for `zarrfs.views.facts.colours`."""
    page = level.keyframe
    if (number := page.tags.valueof(_PHOTOMETRIC)) is None:
        return
    kind = found["PhotometricInterpretation"] = getattr(number, "name", "UNKNOWN")
    extra = page.extrasamples
    if isinstance(extra, tuple) and 0 < len(extra) < page.samplesperpixel:
        found["ExtraSamples"] = [int(use) if use in (0, 1, 2) else 0 for use in extra]
    if kind == "PALETTE" and level.dtype.itemsize == 1 and (palette := _palette(level)):
        found["ColorMap"] = palette


def _palette(level: Any) -> list[int]:
    """The palette of 8 bits that all pages of a level have; empty if there is none."""
    first: list[int] = []
    for page in _pages(level):
        tag = page.aspage().tags.get(_COLOUR_MAP)
        if tag is None or (tag.count, tag.dtype) != (3 * 256, _SHORT):
            return []
        palette = np.ravel(tag.value).tolist()
        first = first or palette
        if palette != first:
            return []
    return first


def _placed(place: dict[str, Any], whole: Any, level: Any) -> dict[str, Any]:
    """The place of a level, whose pixels are larger than those of the whole image."""
    page, found = level.keyframe, dict(place)
    if transform := place.get("spatial:transform"):
        across, down = whole.imagewidth / page.imagewidth, whole.imagelength / page.imagelength
        times = (across, down, 1) * 2
        found["spatial:transform"] = [n * by for n, by in zip(transform, times, strict=True)]
    return found


def _described(file: Any) -> list[Any]:
    """The images of OME-XML. It is read once, since it is long where images are many."""
    images = import_module("tifffile").xml2dict(file.ome_metadata)["OME"]["Image"]
    images = images if isinstance(images, list) else [images]
    return images if len(images) == len(file.series) else []  # which is which?


def _sizes(file: Any, number: int, described: list[Any]) -> dict[str, tuple[float, str]]:
    """The size of an element along an axis, and its unit, as OME-TIFF or ImageJ tell them."""
    # https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html
    series = file.series[number]
    found: dict[str, tuple[Any, Any]] = {}
    if series.kind == "ome":
        pixels = described[number]["Pixels"]
        names = {axis: f"PhysicalSize{axis}" for axis in "XYZ"} | {"T": "TimeIncrement"}
        for axis, name in names.items():
            unit = pixels.get(f"{name}Unit", "s" if axis == "T" else "µm")
            found[axis] = pixels.get(name), unit
    elif series.kind == "imagej":
        said, unit = file.imagej_metadata, file.imagej_metadata.get("unit", "")
        found["Z"] = said.get("spacing"), said.get("zunit", unit)
        found["T"] = said.get("finterval"), said.get("tunit", "s")
        for axis, tag in _RESOLUTION.items():
            pixels, units = series.keyframe.tags.valueof(tag)
            found[axis] = units / pixels, said.get(f"{axis.lower()}unit", unit)
    return {
        axis: (float(size), _ESCAPED.sub(lambda found: chr(int(found[1], 16)), unit))
        for axis, (size, unit) in found.items()
        if isinstance(size, int | float) and 0 < size < 1e100 and unit not in _NO_UNITS
    }


def _spaced(sizes: dict[str, tuple[float, str]], series: Any, level: Any) -> dict[str, Any]:
    """The sizes of a level's elements, which are larger than those of the whole image."""
    whole = dict(zip(series.axes, series.shape, strict=True))
    units: list[Any] = [None] * len(level.shape)
    for i, (axis, length) in enumerate(zip(level.axes, level.shape, strict=True)):
        if axis in sizes and axis in whole:
            size, unit = sizes[axis]
            units[i] = [size * (whole[axis] / length), unit]
    return {"dimension_units": units} if any(units) else {}


def _arrays(file: Any, number: int) -> Refs:
    series = file.series[number]
    missing = _no_data(series.keyframe)
    for level in series.levels:
        # tifffile has 0 in place of values that it does not take, such as the least float32.
        level.keyframe.nodata = 0 if missing is None else missing
    levels = len(series.levels)
    if not any(map(_has_shorter_strips, series.levels)):
        return _found_by_tifffile(file, missing, series=number)
    if levels == 1:
        return _strips(series, missing)
    described = {"version": "0.1", "datasets": [{"path": str(at)} for at in range(levels)]}
    refs: Refs = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        ".zattrs": json.dumps({"multiscales": [described]}),
    }
    for at, level in enumerate(series.levels):
        if _has_shorter_strips(level):
            found = _strips(level, missing)
        else:
            found = _found_by_tifffile(file, missing, series=number, level=at)
        refs |= {f"{at}/{key}": value for key, value in found.items()}
    return refs


def _has_shorter_strips(level: Any) -> bool:
    page = level.keyframe
    return not page.is_tiled and bool(page.imagelength % page.rowsperstrip)


def _found_by_tifffile(file: Any, missing: float | None, **which: int) -> Refs:
    with file.aszarr(**which) as store:
        text = io.StringIO()
        try:
            store.write_fsspec(text, url="", version=0)
        except ValueError as error:
            if (named := _ENUMERATED.search(str(error))) is None:
                raise
            raise ValueError(f"{named[1].lower()} {named[2]} is not served") from None
    refs: Refs = json.loads(text.getvalue())
    for key in [key for key in refs if key.rpartition("/")[2] == ".zarray"]:
        document = json.loads(refs[key])
        _use_own_codecs(document)
        if missing is None:
            # A fill value of Zarr v2 would mark missing values, of which the file knows nothing.
            document["fill_value"] = None
        refs[key] = json.dumps(document)
    return refs


def _use_own_codecs(document: dict[str, Any]) -> None:
    """Replace the codecs of the package ``imagecodecs``; ValueError if zarrfs has no such one."""
    compressor = document.get("compressor") or {}
    if compressor.get("id") == "imagecodecs_zstd":
        document["compressor"] = compressor = {"id": "zstd", "level": 3}
    for kind, codec in (
        ("compression", compressor),
        *(("predictor", codec) for codec in document.get("filters") or ()),
    ):
        package, mark, name = str(codec.get("id")).partition("_")
        if mark and package == "imagecodecs":
            raise ValueError(f"{kind} {name.upper()} is not served")


def _no_data(page: Any) -> float | None:
    """The value that marks missing elements; None if there is none that an element can have."""
    try:
        text = page.tags.valueof(_NO_DATA).replace(",", ".")
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
        with np.errstate(over="ignore"):
            element = page.dtype.type(number)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None
    if page.dtype.kind in "iu":
        return int(number) if element == number else None
    if page.dtype.kind != "f" or (np.isinf(element) and math.isfinite(number)):
        return None
    return float(element)


def _strips(level: Any, missing: float | None) -> Refs:
    """An array of strips, of which the last of each page has fewer rows.

    missing : as `_no_data` returns it.

    Zarr v2 has no chunks of two sizes, so this is v3 with a rectilinear grid.
    """
    page, shape = level.keyframe, level.shape
    compression, rows, length = int(page.compression), page.rowsperstrip, page.imagelength
    if compression not in _CODECS or int(page.predictor) != 1:
        raise ValueError(
            f"strips with compression {compression} and predictor {int(page.predictor)} are not "
            "served"
        )
    places: dict[Any, list[Any]] = {}
    if level.dataoffset is not None:
        lengths, places = pieces("", shape, page.dtype.itemsize, level.dataoffset)
    else:
        # Pages are the leading axes, then planes; strips divide the axis behind these.
        rest = 2 if page.planarconfig == 1 and page.samplesperpixel > 1 else 1
        leading = shape[: len(shape) - rest - 1]
        lengths = [1] * len(leading) + [[[rows, length // rows], length % rows]]
        lengths += shape[len(shape) - rest :]
        places_of_parts = chain.from_iterable(
            zip(one.dataoffsets, one.databytecounts, strict=True) for one in level.pages
        )
        strips = product(*map(range, leading), range(-(-length // rows)))
        for index, (offset, size) in zip(strips, places_of_parts, strict=True):
            if size:
                places[(*index, *(0,) * rest)] = ["", offset, size]
    endian = {"name": "bytes", "configuration": {"endian": _ENDIAN[level.parent.byteorder]}}
    document = array_document(
        shape,
        page.dtype.name,
        lengths,
        [endian, *_CODECS[compression]],
        fill_value(np.array(page.nodata, page.dtype)),
        {} if missing is None else {"_FillValue": missing},
    )
    document["dimension_names"] = list(level.axes)
    refs: Refs = {"zarr.json": json.dumps(document)}
    return refs | {chunk_key(index): place for index, place in places.items()}


def _find_place(page: Any, found: dict[str, Any]) -> None:
    """Add the place by the tags of GeoTIFF, in the conventions ``proj:`` and ``spatial:``.

    https://docs.ogc.org/is/19-008r4/19-008r4.html
    """
    tags: dict[str, Any] = (page.geotiff_tags if page.is_geotiff else None) or {}
    models: dict[Any, str] = {1: "ProjectedCSTypeGeoKey", 2: "GeographicTypeGeoKey"}
    code = tags.get(models.get(tags.get("GTModelTypeGeoKey"), ""))
    if isinstance(code, int) and 1024 <= code < 32767:  # others are described by more keys
        found["proj:code"] = f"EPSG:{int(code)}"
    matrix, scale = tags.get("ModelTransformation"), tags.get("ModelPixelScale")
    points = tags.get("ModelTiepoint")
    if matrix is not None:
        width, row_x, _, x = matrix[0]
        column_y, height, _, y = matrix[1]
    elif scale is not None and points is not None and len(points) == 6:
        (width, height), row_x, column_y = scale[:2], 0.0, 0.0
        height = -abs(height)  # as GDAL has it, also where the sign is that of the step
        x, y = points[3] - points[0] * width, points[4] - points[1] * height
    else:
        return
    if tags.get("GTRasterTypeGeoKey") == 2:
        # Places are those of the middles of elements.
        found["AREA_OR_POINT"] = "Point"
        x, y = x - (width + row_x) / 2, y - (column_y + height) / 2
    transform = [float(value) for value in (width, row_x, x, column_y, height, y)]
    if all(map(math.isfinite, transform)) and width * height != row_x * column_y:
        found["spatial:transform"] = transform


def _tags(file: Any) -> dict[str, Any]:
    """The metadata of the whole image, such as those of GeoTIFF."""
    found = {}
    for name in ("geotiff", "ome", "imagej"):
        metadata = None
        with suppress(*_DAMAGED):
            metadata = getattr(file, f"{name}_metadata", None)
        if metadata:
            found[name] = metadata
    return found
