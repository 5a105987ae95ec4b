"""Configurations of numcodecs' codecs: the allowed ones, their types, and their exceptions.

https://numcodecs.readthedocs.io/en/stable/filter/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numcodecs
import numpy as np

from zarrfs.errors import reason_of

FAILURES = (ValueError, TypeError, RuntimeError, IndexError, OverflowError, ZeroDivisionError)
"""Exceptions that numcodecs raises for unusable data or parameters."""

Members = Mapping[str, Any]

_TYPED = ("astype", "categorize", "delta", "fixedscaleoffset", "quantize")

_MADE = frozenset(
    ("adler32", "astype", "base64", "categorize", "crc32", "crc32c", "delta", "fixedscaleoffset",
     "fletcher32", "jenkins_lookup3", "json2", "msgpack2", "packbits", "quantize", "shuffle",
     "vlen-array")
)  # fmt: skip
"""The only codecs that numcodecs makes for zarrfs. One of its others runs code from the data."""


def own_members(codec_id: str, configuration: Members) -> dict[str, Any]:
    """The configuration with the codec's id in it.

    Raises ValueError if the configuration has the id of another codec.
    """
    own_id = configuration.get("id", codec_id)
    if own_id != codec_id:
        raise ValueError(f"{codec_id}: its configuration names another codec, {own_id!r}")
    return {**configuration, "id": codec_id}


def configured(members: Members) -> Any:
    """Make the codec. Raises ValueError for parameters that it does not accept."""
    if members["id"] not in _MADE:
        raise ValueError(f"zarrfs does not use numcodecs for the codec {members['id']!r}")
    try:
        if members["id"] == "quantize":
            return _Quantize(**{name: value for name, value in members.items() if name != "id"})
        return numcodecs.get_codec(dict(members))
    except FAILURES as error:
        raise ValueError(f"{members['id']}: {reason_of(error)}") from error


class _Quantize(numcodecs.Quantize):  # type: ignore[misc]
    """numcodecs scales numbers in their own type. Those that would become infinite stay."""

    def encode(self, buf: Any) -> np.ndarray[Any, Any]:
        values = np.asarray(buf).view(self.dtype)
        encoded = np.asarray(super().encode(values))
        kept = np.isfinite(values) & ~np.isfinite(encoded)
        # `np.where` gives the byte order of this machine.
        return np.where(kept, values, encoded).astype(self.astype)


def type_parameters(codec_id: str) -> tuple[str, str]:
    """The names of the parameters for the type of decoded and of encoded elements."""
    return ("decode_dtype", "encode_dtype") if codec_id == "astype" else ("dtype", "astype")


def encoded_types(members: Members) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types of a filter's decoded and encoded elements. Raises ValueError."""
    if members["id"] not in _TYPED:
        return np.dtype("u1"), np.dtype("u1")
    names = type_parameters(members["id"])
    given = {name: members[name] for name in names if members.get(name) is not None}
    optional = () if members["id"] == "astype" else names[1:]
    for name in names:
        # numpy makes types of other values, too, such as float64 of None.
        if not isinstance(given.get(name), str) and (name in given or name not in optional):
            wrong = f"{name} is {members[name]!r}" if name in members else f"it lacks {name!r}"
            raise ValueError(f"{members['id']}: {wrong}")
    try:
        source = np.dtype(given[names[0]])
        default = np.dtype("u1") if members["id"] == "categorize" else source
        target = np.dtype(given.get(names[1], default))
    except TypeError as error:
        raise ValueError(f"{members['id']}: {reason_of(error)}") from error
    if source.hasobject or target.hasobject or not source.itemsize or not target.itemsize:
        raise ValueError(f"{members['id']}: cannot convert between {source} and {target}")
    return source, target
