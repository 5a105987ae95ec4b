"""A NetCDF4 file as its own library writes it, and references to what is in it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import netCDF4
import numpy as np
from kerchunk.hdf import SingleHdf5ToZarr

VARIABLES = (
    "temperature",
    "pressure",
    "elevation",
    "time",
    "flags",
    "never_written",
    "model/humidity",
    "model/deep/level",
)
"""Paths in the file of everything that has elements."""


def write_file(path: Path) -> None:
    """Chunked and compressed variables of both byte orders, and others; some partly written."""
    random = np.random.default_rng(11)
    with netCDF4.Dataset(path, "w") as file:
        file.title = "Weather"
        file.createDimension("time", None)
        file.createDimension("y", 13)
        file.createDimension("x", 10)
        packed = {"zlib": True, "shuffle": True, "complevel": 4}

        temperature = file.createVariable(
            "temperature", "f4", ("time", "y", "x"), chunksizes=(2, 5, 4), fill_value=-999, **packed
        )
        temperature.units = "K"
        temperature[:5] = random.normal(280, 9, (5, 13, 10))
        # A later record only: the chunks between hold the fill value, or are not there.
        temperature[8, 2:4] = 1.5

        pressure = file.createVariable(
            "pressure", ">i2", ("y", "x"), endian="big", chunksizes=(4, 4), fill_value=-7, **packed
        )
        pressure[:4, :5] = random.integers(-3000, 3000, (4, 5))

        elevation = file.createVariable("elevation", ">f8", ("y", "x"), endian="big")
        elevation[:] = random.normal(0, 1000, (13, 10))

        time = file.createVariable("time", "f8", ("time",), chunksizes=(4,))
        time[:] = np.arange(9) * 3600.0

        flags = file.createVariable("flags", "u1", ("y", "x"), chunksizes=(13, 10), **packed)
        flags[:] = random.integers(0, 255, (13, 10))

        file.createVariable(
            "never_written", "i4", ("y", "x"), chunksizes=(5, 5), fill_value=42, **packed
        )

        model = file.createGroup("model")
        humidity = model.createVariable("humidity", "u8", ("y", "x"), chunksizes=(7, 10), **packed)
        humidity[:] = random.integers(0, 2**63, (13, 10), "u8")
        level = model.createGroup("deep").createVariable("level", "i8", ())
        level[...] = -5


def write_references(file: Path, references: Path) -> None:
    """Kerchunk's view of the file as a v2 store, with no chunk inlined."""
    found = SingleHdf5ToZarr(str(file), inline_threshold=0).translate()
    references.write_text(json.dumps(found))


def _kerchunk_json(file: Path, references: Path) -> None:
    references.write_text(json.dumps(SingleHdf5ToZarr(str(file)).translate()))


def _kerchunk_parquet(file: Path, references: Path) -> None:
    from kerchunk.df import refs_to_dataframe

    refs_to_dataframe(SingleHdf5ToZarr(str(file)).translate(), str(references))


def _virtualizarr(kind: Literal["json", "parquet"]) -> Callable[[Path, Path], None]:
    def write(file: Path, references: Path) -> None:
        # Few tests need these large packages.
        from obspec_utils.registry import ObjectStoreRegistry
        from obstore.store import LocalStore
        from virtualizarr import open_virtual_dataset
        from virtualizarr.parsers import HDFParser

        registry = ObjectStoreRegistry({"file://": LocalStore()})
        opened = open_virtual_dataset(url=f"file://{file}", registry=registry, parser=HDFParser())
        with opened as dataset:
            dataset.vz.to_kerchunk(str(references), format=kind)

    return write


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "kerchunk.json": _kerchunk_json,
    "kerchunk.parq": _kerchunk_parquet,
    "virtualizarr.json": _virtualizarr("json"),
    "virtualizarr.parq": _virtualizarr("parquet"),
}
"""Writers of references with nothing but their defaults, by the name of what they write."""


def write_v3_references(store: Path, blob: Path, references: Path) -> None:
    """All objects of a store one behind the other in ``blob``, and references to the parts.

    Kerchunk makes none for v3. Every form that a reference can have is in it.
    """
    found: dict[str, Any] = {}
    with blob.open("wb") as target:
        target.write(b"a header")
        for path in sorted(path for path in store.rglob("*") if path.is_file()):
            key, data = str(path.relative_to(store)), path.read_bytes()
            if path.name == "zarr.json":
                found[key] = data.decode()
            elif key.endswith("0/0"):
                found[key] = "base64:" + base64.b64encode(data).decode()
            elif key.endswith("0/1"):
                found[key] = [f"{{{{whole}}}}/{key}"]
            else:
                found[key] = ["{{blob}}", target.tell(), len(data)]
                target.write(data)
    templates = {"blob": str(blob), "whole": str(store)}
    references.write_text(json.dumps({"version": 1, "templates": templates, "refs": found}))
