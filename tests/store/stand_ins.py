"""Servers of other projects in the place of services: Azurite of Azure's, others of the web's."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

AZURITE = Path(__file__).parents[2] / ".venv/azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
# Of every Azurite; it is in the documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def azurite() -> Iterator[str]:
    """Its connection string."""
    if not AZURITE.exists():
        pytest.skip("Azurite is not installed: .ci/npm.sh installs it")
    port = _free_port()
    words = ["node", AZURITE, "--inMemoryPersistence", "--blobPort", str(port), "--silent"]
    server = subprocess.Popen(
        [*words, "--skipApiVersionCheck", "--disableTelemetry"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(server, port)
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        )
    finally:
        server.terminate()
        server.wait(30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        if server.poll() is not None:
            raise RuntimeError(f"{server.args!r} has ended")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"{server.args!r} does not answer")


_NGINX = """
daemon off;
pid {root}/../nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {root}/../nginx;
    proxy_temp_path {root}/../nginx; fastcgi_temp_path {root}/../nginx;
    uwsgi_temp_path {root}/../nginx; scgi_temp_path {root}/../nginx;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location / {{ try_files $uri =404; }}
    }}
}}
"""


@contextmanager
def nginx(root: Path) -> Iterator[str]:
    """The URL of what is below ``root``."""
    if (program := shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")) is None:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    port = _free_port()
    config = root.parent / f"{root.name}.conf"
    config.write_text(_NGINX.format(root=root, port=port))
    server = subprocess.Popen(
        [program, "-c", config, "-e", "stderr"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def wsgidav(root: Path) -> Iterator[str]:
    """The URL of what is below ``root``."""
    for package in ("wsgidav", "cheroot"):
        pytest.importorskip(package, reason=f"these tests need {package}")
    from cheroot.wsgi import Server
    from wsgidav.wsgidav_app import WsgiDAVApp

    application = WsgiDAVApp({
        "provider_mapping": {"/": str(root)},
        "simple_dc": {"user_mapping": {"*": True}},
        "verbose": 0,
        "logging": {"enable": False},
        "property_manager": None,
        "lock_storage": None,
    })  # fmt: skip

    def files_only(environ, start_response):
        """A web server has pages for directories; a store has nothing there."""
        if (root / environ["PATH_INFO"].strip("/")).is_dir():
            start_response("404 Not Found", [("Content-Length", "0")])
            return []
        return application(environ, start_response)

    server = Server(("127.0.0.1", 0), files_only, numthreads=64)
    server.prepare()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.bind_addr[1]}"
    finally:
        server.stop()
        thread.join(10)
