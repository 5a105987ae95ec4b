"""Opens sources with zarrfs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fs.fixtures import loop, mount
from tests.interop.version2.zarr2 import Zarr2
from zarrfs.isolation.decoders import IsolatedDecoder
from zarrfs.store.foreign import kept

from .served_files import DirectFiles

__all__ = ["loop", "mount"]


@pytest.fixture(scope="session")
def zarr2() -> Iterator[Zarr2]:
    """zarr-python 2.18, in a process that all tests share."""
    if sys.version_info >= (3, 14):
        pytest.skip("zarr-python 2.18 needs a numcodecs that this Python has none of")
    process = Zarr2()
    yield process
    process.close()


@pytest.fixture(scope="session")
def _translate() -> Iterator[Callable[..., bytes]]:
    decoder = IsolatedDecoder(kept._PROGRAM)
    yield decoder.decode
    decoder.close()


@pytest.fixture(autouse=True)
def _one_translator(monkeypatch: pytest.MonkeyPatch, _translate: Callable[..., bytes]) -> None:
    """One process finds the chunks in all files: its start takes far longer than most of them.

    Other programs, and the same with other modules, have a process of their own as ever.
    """
    usual = kept._PROGRAM, [*sys.path]

    def decoder(program: str) -> Any:
        if (program, sys.path) != usual:
            return IsolatedDecoder(program)
        return SimpleNamespace(decode=_translate, close=lambda: None)

    monkeypatch.setattr(kept, "IsolatedDecoder", decoder)


@pytest.fixture
def open_direct() -> Iterator[Callable[..., DirectFiles]]:
    """Opens sources without FUSE, and closes them after the test."""
    with ExitStack() as stack:

        def open_source(source: object, **options: Any) -> DirectFiles:
            files = DirectFiles(str(source), **options)
            stack.callback(files.close)
            return files

        yield open_source
