"""An object store in memory for tests and benchmarks: S3 and plain HTTP behind one port.

`RemoteServer` runs it in a thread, ``python -m tests.remote_server`` in a process of its own.
`Link` says how far away it is, `Fault` what goes wrong with a request, `Counts` what was asked.
"""

from tests.remote_server.link import Counts, Fault, Link, random_faults
from tests.remote_server.server import RemoteServer

__all__ = ["Counts", "Fault", "Link", "RemoteServer", "random_faults"]
