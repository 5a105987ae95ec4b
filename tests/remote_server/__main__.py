"""Runs the server until its input ends, and prints its URL.

A directory may be given: each directory in it is a bucket, the files below are its objects.
"""

import sys
from pathlib import Path

from tests.remote_server.server import RemoteServer


def _objects(bucket: Path) -> dict[str, bytes]:
    files = (path for path in bucket.rglob("*") if path.is_file())
    return {str(path.relative_to(bucket)): path.read_bytes() for path in files}


with RemoteServer() as server:
    for bucket in Path(sys.argv[1]).iterdir() if len(sys.argv) > 1 else ():
        server.make_bucket(bucket.name, _objects(bucket))
    print(server.url, flush=True)
    sys.stdin.read()
