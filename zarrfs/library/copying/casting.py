"""Elements in another data type, if none of them loses anything."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import ZarrfsError
from zarrfs.format.chunk_grid import Index

_NUMBERS = "biufc"


class InexactCast(ZarrfsError):
    """An element has no equal in the new data type."""


def cast(values: NDArray[Any], dtype: np.dtype[Any], what: str, origin: Index = ()) -> NDArray[Any]:
    """``values`` as ``dtype``.

    what : an element, for the error.
    origin : index of the first one.

    Raises InexactCast unless each new element equals the old one; NaN equals NaN.
    """
    old = values.dtype
    if old == dtype:
        return values
    if not (_is_number(old) and _is_number(dtype)):
        raise InexactCast(f"{what}: {old} is not converted to {dtype}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of imaginary parts, which the comparison finds
        new = values.astype(dtype)
        same = new.astype(old) == values
        if "c" not in (old.kind, dtype.kind):
            # A negative number becomes a large one, and comes back the same.
            same &= (new < 0) == (values < 0)
            same &= _in_range(values, dtype) & _in_range(new, old)
        if not _is_whole(old) and not _is_whole(dtype) and (old.kind != "c" or dtype.kind == "c"):
            same |= np.isnan(values) & np.isnan(new)
    if same.all():
        return new
    first = np.unravel_index(int(np.argmin(same)), same.shape)
    if origin:
        what += f" at {[o + int(i) for o, i in zip(origin, first, strict=True)]}"
    raise InexactCast(f"{what}: {values[first]!s} of {old} has no equal in {dtype}")


def _is_number(dtype: np.dtype[Any]) -> bool:
    # Those of ml_dtypes are of kind V, and have no fields.
    return dtype.kind in _NUMBERS or (dtype.kind == "V" and dtype.type is not np.void)


def _is_whole(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu" or "int" in dtype.name


def _in_range(values: NDArray[Any], dtype: np.dtype[Any]) -> Any:
    """Where a conversion to integers is defined: past their ends it depends on the processor."""
    if dtype.kind not in "iu" or values.dtype.kind not in "fV" or _is_whole(values.dtype):
        return True
    limits = np.iinfo(dtype)
    wide = values.astype(np.float64)
    return (wide >= float(limits.min)) & (wide < float(limits.max) + (limits.bits < 54))
