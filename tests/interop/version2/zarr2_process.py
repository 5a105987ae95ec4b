"""zarr-python 2.18 at work: a process that answers requests, one line of JSON for each.

Runs where nothing else is installed. Arrays travel as NPY files in base64.
"""

import base64
import io
import json
import sys
import warnings

import numpy as np
import zarr
from numcodecs import get_codec


def array_of(text):
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)


def text_of(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def create(path, name, fill, compressor, filters, **members):
    """An array with no chunks; ``fill`` is one element, which also tells the dtype."""
    element = array_of(fill)
    group = zarr.open_group(zarr.DirectoryStore(path), mode="a") if name else None
    zarr.open_array(
        path if group is None else group.store,
        path=name or None,
        mode="w",
        dtype=element.dtype,
        fill_value=element[()],
        compressor=compressor and get_codec(compressor),
        filters=filters and [get_codec(member) for member in filters],
        **members,
    )


def write(path, values):
    array = zarr.open_array(path, mode="r+")
    array[...] = array_of(values)


def read(path):
    """The whole array, and how many of its chunks are stored."""
    array = zarr.open_array(path, mode="r")
    return {"values": text_of(np.asarray(array[...])), "stored": array.nchunks_initialized}


def consolidate(path):
    zarr.consolidate_metadata(path)


def read_group(path, name):
    """An array of a group, found in the consolidated metadata."""
    return {"values": text_of(np.asarray(zarr.open_consolidated(path, mode="r")[name][...]))}


REQUESTS = {
    function.__name__: function for function in (create, write, read, consolidate, read_group)
}


def answer(request):
    """What went wrong is for the other side to raise."""
    try:
        return REQUESTS[request.pop("do")](**request) or {}
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({"version": zarr.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
