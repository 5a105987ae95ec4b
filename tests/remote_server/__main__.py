"""Runs the server until its input ends, and prints its URL."""

from __future__ import annotations

import sys

from tests.remote_server.server import RemoteServer

with RemoteServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
