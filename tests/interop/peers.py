"""Other implementations of Zarr, that write and read what zarrfs must read too."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts
import zarr

from .spec import Array, Spec


@contextmanager
def _zarr_python(pipeline: str) -> Iterator[None]:
    # Peers warn of what is theirs: of types without a specification, of falling back.
    with (
        warnings.catch_warnings(),
        zarr.config.set({"codec_pipeline.path": pipeline, "codec_pipeline.strict": True}),
    ):
        warnings.simplefilter("ignore")
        yield


def _zarr_write(pipeline: str, path: Path, spec: Spec, data: Array) -> None:
    with _zarr_python(pipeline):
        array = zarr.create(
            shape=spec.shape,
            chunks=spec.stored,
            dtype=spec.dtype,
            fill_value=spec.filled(())[()],
            codecs=list(spec.codecs),
            chunk_key_encoding=spec.keys,
            store=path,
            zarr_format=3,
        )
        array[...] = data


def _zarr_read(pipeline: str, path: Path) -> Array:
    with _zarr_python(pipeline):
        return np.asarray(zarr.open_array(path, mode="r")[...])


def _ts_spec(path: Path) -> dict[str, Any]:
    # Nothing here has to survive a power failure.
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "context": {"file_io_sync": False},
    }


def _ts_write(path: Path, spec: Spec, data: Array) -> None:
    array = ts.open({**_ts_spec(path), "metadata": spec.document}, create=True).result()
    array.write(data).result()


def _ts_read(path: Path) -> Array:
    return np.asarray(ts.open(_ts_spec(path), read=True).result().read().result())


ZARR_PYTHON = "zarr.core.codec_pipeline.BatchedCodecPipeline"
ZARRS = "zarrs.ZarrsCodecPipeline"

WRITERS: dict[str, Callable[..., None]] = {
    "zarr-python": partial(_zarr_write, ZARR_PYTHON),
    "tensorstore": _ts_write,
    "zarrs": partial(_zarr_write, ZARRS),
}
"""Each makes an array of its own, its metadata document included, and writes all of it."""

READERS: dict[str, Callable[[Path], Array]] = {
    "zarr-python": partial(_zarr_read, ZARR_PYTHON),
    "tensorstore": _ts_read,
    "zarrs": partial(_zarr_read, ZARRS),
}
