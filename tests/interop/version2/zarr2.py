"""zarr-python 2.18, the last writer of version 2, which cannot stand beside zarr 3."""

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.interop.spec import Array

VERSION = "2.18.7"
PACKAGES = Path(sys.prefix) / "zarr2"
"""Where it is installed with what it needs."""


class Zarr2:
    """One process, started once for many requests. Its errors are raised as RuntimeError."""

    def __init__(self) -> None:
        assert (PACKAGES / "zarr").is_dir(), "zarr-python 2.18 is not installed: run make"
        # Without the packages of this process: only the directory and the standard library.
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-P", str(Path(__file__).with_name("zarr2_process.py"))],
            env={**os.environ, "PYTHONPATH": str(PACKAGES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == {"version": VERSION}

    def close(self) -> None:
        self._process.communicate(timeout=30)
        assert self._process.returncode == 0

    def create(
        self,
        path: Path,
        name: str = "",
        *,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        fill: Array,
        order: str = "C",
        compressor: Any = None,
        filters: Any = None,
        dimension_separator: str = ".",
    ) -> None:
        """An array like ``fill``, with no chunks; in the group at ``path`` if it has a name."""
        self._do(
            "create",
            path=str(path),
            name=name,
            shape=shape,
            chunks=chunks,
            fill=_text_of(fill),
            order=order,
            compressor=compressor,
            filters=filters,
            dimension_separator=dimension_separator,
        )

    def write(self, path: Path, values: Array) -> None:
        self._do("write", path=str(path), values=_text_of(values))

    def read(self, path: Path) -> tuple[Array, int]:
        """The whole array, and how many of its chunks are stored."""
        found = self._do("read", path=str(path))
        return _array_of(found["values"]), found["stored"]

    def consolidate(self, path: Path) -> None:
        self._do("consolidate", path=str(path))

    def read_group(self, path: Path, name: str) -> Array:
        """An array of a group, found in the consolidated metadata."""
        return _array_of(self._do("read_group", path=str(path), name=name)["values"])

    def _do(self, request: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": request, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{request} {arguments.get('path')}: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "zarr-python 2.18 has ended"
        return json.loads(line)


def _text_of(array: Array) -> str:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def _array_of(text: str) -> Array:
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
