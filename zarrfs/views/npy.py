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
    # Types that numpy does not own (bfloat16 and the like) have no description that
    # numpy alone could read back.
    if dtype.isbuiltin == 2 or dtype.hasobject:
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
