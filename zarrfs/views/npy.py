"""``array.npy``: the header that numpy expects before the elements.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Literal

import numpy as np

from zarrfs.format.chunk_grid import Shape


def npy_header(
    dtype: np.dtype[Any],
    shape: Shape,
    byteorder: Literal["little", "big"],
    order: Literal["C", "F"],
) -> bytes | None:
    """Magic and header of an NPY file; None where its format cannot express the type.

    dtype : of the elements in memory; ``byteorder`` is that of the file.
    """
    if dtype.hasobject or not _is_numpys_own(dtype):
        return None
    stored = dtype.newbyteorder(">") if byteorder == "big" else dtype
    descr: Any = np.lib.format.dtype_to_descr(stored)
    if np.lib.format.descr_to_dtype(descr) != stored:
        return None
    header = BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": order == "F", "shape": shape}
    )
    return header.getvalue()


def _is_numpys_own(dtype: np.dtype[Any]) -> bool:
    """Whether numpy alone can read the description of ``dtype`` back.

    It cannot for types of other packages (bfloat16 and the like), nor for structs that have
    such a field. Of some, numpy's own parser fails on the description.
    """
    if dtype.subdtype is not None:
        return _is_numpys_own(dtype.subdtype[0])
    if dtype.names is not None:
        return all(_is_numpys_own(dtype[name]) for name in dtype.names)
    return dtype.isbuiltin != 2
