"""NPY: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html."""

from __future__ import annotations

import io
import warnings

from numpy.lib import format as npy

from zarrfs.errors import reason_of
from zarrfs.format.text_forms.data_types import data_type_json
from zarrfs.library.headers.header import Header, HeaderError, read_start

MAGIC = b"\x93NUMPY"


def read_npy(path: str) -> Header:
    """numpy reads the header, of at most 10 000 bytes, as a literal. Raises HeaderError."""
    file = io.BytesIO(read_start(path))
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, _, dtype = read(file)
        return Header(tuple(map(int, shape)), data_type_json(dtype))
    except Exception as error:  # of the tokenizer of Python, too
        raise HeaderError(f"NPY header: {reason_of(error)[:200]}") from error
