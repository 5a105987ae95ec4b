"""Servers of other projects in the place of services: Azurite of Azure's, others of files."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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
    with _running([*words, "--skipApiVersionCheck", "--disableTelemetry"], port):
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        )


@contextmanager
def _running(words: list[Any], port: int) -> Iterator[None]:
    """Runs a server, from when it answers at ``port``."""
    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(words, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        _wait(server, port)
        yield
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
    with _web_server(root, _NGINX, [program, "-e", "stderr", "-c"]) as url:
        yield url


_APACHE = """
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
User www-data
Group www-data
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {root}/../apache.pid
ErrorLog /dev/null
DocumentRoot {root}
"""


@contextmanager
def apache(root: Path) -> Iterator[str]:
    """The URL of what is below ``root``."""
    if (program := shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin")) is None:
        pytest.skip("Apache is not installed: apt-get install apache2-bin")
    with _web_server(root, _APACHE, [program, "-DFOREGROUND", "-f"]) as url:
        yield url


@contextmanager
def _web_server(root: Path, template: str, words: list[str]) -> Iterator[str]:
    port = _free_port()
    config = root.parent / f"{root.name}.conf"
    config.write_text(template.format(root=root, port=port))
    with _running([*words, config], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def python_server(root: Path) -> Iterator[str]:
    """The URL of what is below ``root``, served by ``python3 -m http.server``."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def list_directory(self, _path):
            """A web server has pages for directories; a store has nothing there."""
            self.send_error(404)

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


_SFTP = """
import asyncio, asyncssh, sys

class Anyone(asyncssh.SSHServer):
    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return True

def files(channel):
    return asyncssh.SFTPServer(channel, chroot=sys.argv[1].encode())

async def serve():
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        "127.0.0.1", int(sys.argv[2]), server_factory=Anyone, server_host_keys=[key],
        sftp_factory=files,
    )
    await server.wait_closed()

asyncio.run(serve())
"""


@contextmanager
def sftp(root: Path) -> Iterator[str]:
    """The URL of what is below ``root``, for each user with any password."""
    for package in ("asyncssh", "paramiko"):
        pytest.importorskip(package, reason=f"these tests need {package}")
    port = _free_port()
    with _running([sys.executable, "-c", _SFTP, root, str(port)], port):
        yield f"sftp://127.0.0.1:{port}"


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
