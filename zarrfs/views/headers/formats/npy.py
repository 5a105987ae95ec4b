"""NPY: the header that numpy expects before the elements.

https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan


def npy(array: Described) -> Plan:
    """Every type that numpy alone can read back, of any shape, in both byte orders."""
    dtype = array.data_type.dtype
    refused = Inexpressible(f"NPY has no {array.data_type.name}")
    # Types from other packages, such as bfloat16, have no description in numpy.
    if not array.data_type.fixed_size or dtype.isbuiltin == 2 or dtype.hasobject:
        raise refused
    stored = dtype.newbyteorder(">") if array.big else dtype
    try:
        descr: Any = np.lib.format.dtype_to_descr(stored)
        same = np.lib.format.descr_to_dtype(descr) == stored
    except (TypeError, ValueError):
        same = False
    if not same:
        raise refused
    fortran = array.layout.order == "F"
    header = BytesIO()
    # Made now, because only this call refuses some field names; the header is small.
    try:
        np.lib.format.write_array_header_1_0(
            header,
            {
                "descr": descr,
                "fortran_order": fortran,
                "shape": array.shape[::-1] if fortran else array.shape,
            },
        )
    except (ValueError, UnicodeError) as error:
        raise refused from error
    form = Form(header.getvalue(), array.layout)
    return lambda: form
