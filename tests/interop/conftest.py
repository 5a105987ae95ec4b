"""Opens sources with zarrfs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .served_files import DirectFiles


@pytest.fixture
def open_direct() -> Iterator[Callable[..., DirectFiles]]:
    """Opens sources without FUSE, and closes them after the test."""
    with ExitStack() as stack:

        def open_source(source: object, **options: Any) -> DirectFiles:
            files = DirectFiles(str(source), **options)
            stack.callback(files.close)
            return files

        yield open_source
