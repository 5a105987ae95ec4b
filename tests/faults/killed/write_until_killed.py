"""Writes whole chunks through a mount until it is gone, and tells what it does.

Arguments: a seed, and directories of chunk files of one dimension. Prints ``w FILE VALUE``
before it fills a file with the four-byte VALUE in one call, and ``s FILE VALUE`` when that
is synced.
"""

import errno
import os
import random
import sys
from itertools import count


def main() -> None:
    dice = random.Random(int(sys.argv[1]))
    files = [
        os.path.join(directory, name)
        for directory in sys.argv[2:]
        for name in sorted(os.listdir(directory))
    ]
    opened = {path: os.open(path, os.O_RDWR) for path in files}
    for value in count(1):
        path = dice.choice(files)
        size = os.fstat(opened[path]).st_size
        tell("w", path, value)
        os.pwrite(opened[path], value.to_bytes(4, "little") * (size // 4), 0)
        if dice.random() < 0.3:
            os.fsync(opened[path])
            tell("s", path, value)


def tell(what: str, path: str, value: int) -> None:
    os.write(1, f"{what} {path} {value}\n".encode())


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED):
            raise
    os._exit(0)  # closing the files would fail
