"""Reads ``chunks/1`` of arrays in a process that can take only so many more bytes.

Arguments: bytes, directories. Prints for each, in a line, why it cannot be read.
"""

import resource
import sys
from pathlib import Path

from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from zarrfs.errors import ChunkError
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore


def main() -> None:
    room, sources = int(sys.argv[1]), sys.argv[2:]
    loop = Loop()
    config = FileSystemConfig(memory=8 << 20, loaders=1)
    mounts = [Mounted(loop, LocalStore(source), config) for source in sources]
    # What any read needs has been taken after this: threads, modules, codecs.
    for mounted in mounts:
        mounted.read("chunks/0")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for mounted in mounts:
        try:
            mounted.read("chunks/1")
            print()
        except ChunkError as error:
            print(error.reason)
        assert mounted.read("chunks/2") == mounted.read("chunks/0")


if __name__ == "__main__":
    main()
