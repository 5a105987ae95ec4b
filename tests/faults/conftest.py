"""Opens file systems without a kernel, and has a store elsewhere."""

from collections.abc import Iterator

import pytest

from tests.fs.fixtures import loop, mount
from tests.remote_server import RemoteServer

__all__ = ["loop", "mount"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServer]:
    """The store of all URLs that begin with ``s3:``."""
    with RemoteServer() as server:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server
