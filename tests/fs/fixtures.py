"""Fixtures that open file systems without a kernel, over any store."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.base import Store
from zarrfs.store.local.local import LocalStore

_MEMORY = 64 << 20


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def mount(loop: Loop) -> Iterator[Callable[..., Mounted]]:
    """Opens a directory or a store as a file system; keywords are `FileSystemConfig`'s."""
    with ExitStack() as stack:

        def mount_source(
            source: Path | Store, document: dict[str, Any] | None = None, **config: Any
        ) -> Mounted:
            store = LocalStore(source) if isinstance(source, Path) else source
            config = {"memory": _MEMORY, "loaders": 2, **config}
            mounted = Mounted(loop, store, FileSystemConfig(**config), document)
            stack.callback(mounted.close)
            return mounted

        yield mount_source
