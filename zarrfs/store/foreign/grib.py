"""References to the messages of a GRIB file, found by their headers and described by ecCodes.

https://codes.ecmwf.int/grib/format/
"""

from __future__ import annotations

import json
import math
import os
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from zarrfs.errors import reason_of
from zarrfs.store.foreign.found import Found, inlined

_MOST_FIELDS = 100_000
# Fields that share a message have no bytes of their own, and are kept with the references.
_MOST_INLINED = 64 << 20
_AT_ONCE = 1 << 20
# Points of all grids for which ecCodes works out the axes.
_MOST_POINTS = 10_000_000
_END = b"7777"
_SCALARS = ("number", "time", "step", "valid_time")
# ecCodes gives a number for the length of a row where rows differ in length.
_MISSING = 2**31 - 1
_PROJECTED = ("lambert", "mercator", "polar_stereographic")


class _Message(NamedTuple):
    """Where a message lies; ``wrong`` is a reason why nothing of it is served."""

    start: int
    length: int
    wrong: str | None


def references(path: str) -> Found:
    """A group for each field, since fields need not share a grid or a variable.

    Raises ImportError, OSError, and ValueError for a file without messages.
    """
    with open(path, "rb") as file:
        return _Translation(path, file).run()


class _Translation:
    def __init__(self, path: str, file: BinaryIO) -> None:
        self._eccodes = import_module("eccodes")
        self._cf = import_module("cfgrib.dataset")
        self._cfmessage = import_module("cfgrib.cfmessage")
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._found = Found()
        self._room = _MOST_INLINED
        self._points = _MOST_POINTS
        # By the hash of its description, the coordinates of a grid with rows and columns.
        self._grids: dict[str, tuple[Any, Any]] = {}

    def run(self) -> Found:
        messages = self._messages()
        if not messages:
            raise ValueError("it has no messages")
        if all(message.wrong for message in messages):
            raise ValueError(f"its first message cannot be read: {messages[0].wrong}")
        self._found.refs[".zgroup"] = _GROUP
        fields: list[tuple[_Message, bytes | str | None]] = []
        for message in messages:
            fields += [(message, field) for field in self._fields(message)]
        if len(fields) > _MOST_FIELDS:
            raise ValueError(f"it has more than {_MOST_FIELDS} fields")
        width = len(str(len(fields) - 1))
        for number, (message, field) in enumerate(fields):
            at = f"{number:0{width}}"
            try:
                if isinstance(field, str):
                    raise ValueError(field)
                self._field(at, message, field)
            except Exception as error:  # noqa: BLE001 - ecCodes raises any exception
                for key in [key for key in self._found.refs if key.startswith(f"{at}/")]:
                    del self._found.refs[key]
                self._found.note(at, reason_of(error))
        self._compare(len(messages))
        return self._found

    def _compare(self, count: int) -> None:
        """Note if ecCodes finds other messages than this program."""
        try:
            self._file.seek(0)
            there = self._eccodes.codes_count_in_file(self._file)
        except self._eccodes.CodesInternalError:
            return  # a message is damaged, and has a note
        if there > count:
            self._found.note(
                "others", f"ecCodes finds {there} messages, of which these are {count}"
            )

    # --- messages ---------------------------------------------------------------

    def _messages(self) -> list[_Message]:
        found = []
        at = 0
        while (start := self._next(at)) is not None:
            found.append(message := self._message(start))
            # Behind a damaged message the next one may begin anywhere.
            at = start + (4 if message.wrong else message.length)
        return found

    def _next(self, at: int) -> int | None:
        while at < self._size:
            part = self._read(at, _AT_ONCE)
            if (start := part.find(b"GRIB")) >= 0:
                return at + start
            at += max(1, len(part) - 3)
        return None

    def _message(self, start: int) -> _Message:
        head = self._read(start, 16)
        if len(head) < 16:
            return _Message(start, len(head), "the file ends in it")
        edition = head[7]
        if edition not in (1, 2):
            return _Message(start, 16, f"it is of edition {edition}, which is not known")
        length = int.from_bytes(head[4:7] if edition == 1 else head[8:16], "big")
        if edition == 1 and length >> 23:
            length = self._length(start)  # in another unit, by a convention of ECMWF
        if length < 16 or start + length > self._size:
            return _Message(start, 16, "the file ends in it, or its length is wrong")
        if self._read(start + length - 4, 4) != _END:
            return _Message(start, 16, "its length is wrong: it does not end there")
        return _Message(start, length, None)

    def _length(self, start: int) -> int:
        self._file.seek(start)
        try:
            handle = self._eccodes.codes_grib_new_from_file(self._file)
        except self._eccodes.CodesInternalError:
            return 0
        try:
            return int(self._eccodes.codes_get_long(handle, "totalLength"))
        finally:
            self._eccodes.codes_release(handle)

    def _fields(self, message: _Message) -> list[bytes | str | None]:
        """For each field: None for the message itself, other bytes, or why it is not served."""
        if message.wrong:
            return [message.wrong]
        count = self._count(message)
        if count <= 1:
            return [None]
        if message.length * count > self._room:
            return [f"it is one of {count} fields of a message of {message.length} bytes"] * count
        found: list[bytes | str | None] = []
        with open(os.memfd_create("message"), "w+b") as file:
            file.write(self._read(message.start, message.length))
            file.seek(0)
            self._eccodes.codes_grib_multi_support_on()
            try:
                while len(found) < count:
                    handle = self._eccodes.codes_grib_new_from_file(file)
                    if handle is None:
                        break
                    found.append(self._eccodes.codes_get_message(handle))
                    self._eccodes.codes_release(handle)
            except self._eccodes.CodesInternalError as error:
                found.append(reason_of(error))
            finally:
                self._eccodes.codes_grib_multi_support_off()
        self._room -= sum(map(len, filter(None, found)))
        return found + ["it is in a message of which no more can be read"] * (count - len(found))

    def _count(self, message: _Message) -> int:
        """How many sections with data a message has: as many fields."""
        if self._read(message.start + 7, 1) == b"\1":
            return 1
        at, end, count = message.start + 16, message.start + message.length - 4, 0
        while at + 5 <= end:
            head = self._read(at, 5)
            count += head[4] == 7
            at += max(5, int.from_bytes(head[:4], "big"))
        return count

    def _read(self, at: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, at)

    # --- fields -----------------------------------------------------------------

    def _field(self, at: str, place: _Message, own: bytes | None) -> None:
        data = self._read(place.start, place.length) if own is None else own
        handle = self._eccodes.codes_new_from_message(data)
        message = self._cfmessage.CfMessage(handle)  # which releases it
        where: Any = [self._path, place.start, place.length]
        if own is not None:
            where = inlined(own)
        name = message["cfVarName"]
        name = message["shortName"] if name in ("undef", "unknown") else name
        shape, dimensions = self._shape(message, self._eccodes.codes_get_size(handle, "values"))
        kind = np.dtype(self._eccodes.codes_get_native_type(handle, "values"))
        keys = (
            *self._cf.DATA_ATTRIBUTES_KEYS,
            *self._cf.EXTRA_DATA_ATTRIBUTES_KEYS,
            *self._cf.GRID_TYPE_MAP.get(message["gridType"], ()),
        )
        attributes = self._attributes(message, keys)
        for name_of_cf, key in _ALSO.items():
            if f"GRIB_{key}" in attributes:
                attributes[name_of_cf] = attributes[f"GRIB_{key}"]
        self._array(f"{at}/{name}", shape, dimensions, kind, where, attributes, name)
        coordinates = [
            *self._scalars(at, message),
            *self._places(at, message, handle, shape, dimensions, where),
        ]
        about = self._attributes(message, self._cf.GLOBAL_ATTRIBUTES_KEYS)
        if coordinates:
            about["coordinates"] = " ".join(coordinates)
        self._found.refs[f"{at}/.zgroup"] = _GROUP
        self._found.refs[f"{at}/.zattrs"] = json.dumps(about)

    def _shape(self, message: Any, size: int) -> tuple[tuple[int, ...], list[str]]:
        """Rows and columns if the message has as many values, and else one axis."""
        rows, columns = _number(message, "Ny"), _number(message, "Nx")
        if rows * columns != size:
            return (size,), ["values"]
        regular = message["gridType"] in self._cf.GRID_TYPES_DIMENSION_COORDS
        dimensions = ["latitude", "longitude"] if regular else ["y", "x"]
        if _number(message, "jPointsAreConsecutive", 0):
            return (columns, rows), dimensions[::-1]
        return (rows, columns), dimensions

    def _scalars(self, at: str, message: Any) -> list[str]:
        """Coordinates that are one number of the message."""
        found = []
        level = message.get("typeOfLevel")
        for name in (*_SCALARS, level):
            key = "level" if name == level else "step:int" if name == "step" else name
            try:
                value = None if name is None else message.get(key)
            except Exception:  # noqa: BLE001 - ecCodes raises any exception
                continue
            if value is None or not np.isscalar(value) or isinstance(value, str):
                continue
            number = np.asarray(value, float if name == level else None)
            attributes = self._cf.COORD_ATTRS.get(name, {})
            self._array(f"{at}/{name}", (), [], number.dtype, _inlined(number), attributes)
            found.append(name)
        return found

    def _places(
        self, at: str, message: Any, handle: Any, shape: Any, dimensions: list[str], where: Any
    ) -> list[str]:
        """The latitudes and longitudes of the values, if ecCodes gives them in the same order."""
        if len(shape) == 1 and _number(message, "alternativeRowScanning", 0):
            return []  # ecCodes gives them as if every row ran in the same direction
        if not _in_order(message["gridType"], _number(message, "scanningMode", 0)):
            return []
        try:
            sizes = {
                self._eccodes.codes_get_size(handle, key) for key in ("latitudes", "longitudes")
            }
        except self._eccodes.CodesInternalError:
            return []  # coefficients of spherical harmonics lie nowhere
        names = ["latitude", "longitude"]
        about = [self._cf.COORD_ATTRS[name] for name in names]
        grid, points = message["md5GridSection"], math.prod(shape)
        if sizes != {points}:
            return []
        if grid not in self._grids:
            self._points -= points
        if sorted(dimensions) != names or self._points < 0:
            for name, attributes in zip(names, about, strict=True):
                kind = np.dtype("f8")
                self._array(f"{at}/{name}", shape, dimensions, kind, where, attributes, name)
            return names
        if grid not in self._grids:
            values = [
                np.moveaxis(
                    np.asarray(self._eccodes.codes_get_array(handle, f"{name}s")).reshape(shape),
                    dimensions.index(name),
                    0,
                ).reshape(shape[dimensions.index(name)], -1)[:, 0]
                for name in names
            ]
            self._grids[grid] = values[0], values[1]
        for name, axis, attributes in zip(names, self._grids[grid], about, strict=True):
            data = _inlined(np.ascontiguousarray(axis))
            self._array(f"{at}/{name}", axis.shape, [name], axis.dtype, data, attributes)
        return names

    @staticmethod
    def _attributes(message: Any, keys: Any) -> dict[str, Any]:
        found = {}
        for key in keys:
            try:
                value = message.get(key)
            except Exception:  # noqa: BLE001 - ecCodes raises any exception
                continue
            if isinstance(value, str | int | float):
                found[f"GRIB_{key}"] = value
        if "GRIB_centreDescription" in found:
            found["institution"] = found["GRIB_centreDescription"]
        return found

    def _array(
        self,
        path: str,
        shape: tuple[int, ...],
        dimensions: list[str],
        dtype: np.dtype[Any],
        chunk: Any,
        attributes: dict[str, Any],
        var: str | None = None,
    ) -> None:
        """
        chunk : where it lies, or its inlined bytes.
        var : what the message has in it; None: the bytes are those of the elements.
        """
        kind = dtype.newbyteorder("<") if var is None else dtype
        self._found.refs[f"{path}/.zarray"] = json.dumps(
            {
                "zarr_format": 2,
                "shape": shape,
                "chunks": [max(1, length) for length in shape],
                "dtype": kind.str,
                "order": "C",
                "compressor": None,
                "fill_value": "NaN" if var is not None and kind.kind == "f" else None,
                "filters": [{"id": "grib", "var": var, "dtype": dtype.name}] if var else None,
            }
        )
        with_names = {**attributes, "_ARRAY_DIMENSIONS": dimensions}
        self._found.refs[f"{path}/.zattrs"] = json.dumps(with_names)
        self._found.refs[f"{path}/{'.'.join('0' * len(shape)) or '0'}"] = chunk


_GROUP = '{"zarr_format": 2}'
_ALSO = {"long_name": "name", "units": "units", "standard_name": "cfName"}


def _in_order(grid: str, mode: int) -> bool:
    """Whether ecCodes gives the places of points in the order of the values.

    For some grids it ignores a part of the scanning mode.
    """
    negative_i, positive_j, by_columns = (mode & bit for bit in (128, 64, 32))
    if grid.startswith("reduced_"):
        return not (negative_i or positive_j or by_columns)
    if grid in _PROJECTED:
        return bool(positive_j) and not (negative_i or by_columns)
    return not (grid.endswith("_gg") and by_columns)


def _number(message: Any, key: str, default: int = -1) -> int:
    value = message.get(key)
    return default if not isinstance(value, int) or value >= _MISSING else value


def _inlined(array: np.ndarray[Any, Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"))
    return inlined(little.tobytes())
