"""The files of one drawn array: its elements, the array itself, and copies to overwrite."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import page_cache
from benchmarks.shapes.data import write_elements, write_other_elements
from benchmarks.shapes.geometry import Geometry

_VERSION = 1  # of what `data` makes of a geometry
_PART = 1 << 20


@dataclass(frozen=True)
class Subject:
    """Built in ``directory``, or found there complete."""

    geometry: Geometry
    directory: Path

    @classmethod
    def build(cls, geometry: Geometry, parent: Path) -> Subject:
        """In a directory of its own below ``parent``."""
        text = json.dumps([_VERSION, geometry.as_document()], sort_keys=True)
        name = f"{geometry.seed}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
        subject = cls(geometry, parent / name)
        if not subject.directory.exists():
            partial = parent / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            cls(geometry, partial)._build()
            partial.rename(subject.directory)
        return subject

    @property
    def array(self) -> Path:
        """The Zarr array."""
        return self.directory / "array.zarr"

    @property
    def plain(self) -> Path:
        """A file of the bytes of ``array.bin``."""
        return self.directory / "plain.bin"

    @property
    def other(self) -> Path:
        """A file of other elements, to write over the array."""
        return self.directory / "other.bin"

    @property
    def elements(self) -> NDArray[Any]:
        return np.memmap(self.plain, self.geometry.dtype, "r", shape=self.geometry.shape)

    @cached_property
    def stored_bytes(self) -> int:
        return sum(path.stat().st_size for path in _files(self.array))

    def warm(self) -> None:
        """The stored bytes are in the page cache."""
        for path in _files(self.array):
            with path.open("rb", buffering=0) as file:
                while file.read(_PART):
                    pass

    def cool(self) -> None:
        """The stored bytes are not, whoever else uses the machine keeps what is cached."""
        for path in _files(self.array):
            page_cache.drop_file(path)

    def copy(self, name: str) -> Path:
        """The array once more, made afresh, durable, to be written to."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.array, path)
        _sync(path)
        return path

    def _build(self) -> None:
        import tensorstore as ts

        write_elements(self.geometry, self.plain)
        write_other_elements(self.geometry, self.plain, self.other)
        document = {k: v for k, v in self.geometry.metadata.items() if k != "zarr_format"}
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{self.array}/"},
            "metadata": document,
        }
        # One sync at the end instead of one for each file.
        context = ts.Context({"file_io_sync": False})
        ts.open(spec, context=context, create=True).result().write(self.elements).result()
        _sync(self.directory)


def _files(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        for name in names:
            yield Path(parent, name)


def _sync(directory: Path) -> None:
    """The file system has stored all it was given, or it would do so while others measure."""
    subprocess.run(["sync", "-f", str(directory)], check=True)
