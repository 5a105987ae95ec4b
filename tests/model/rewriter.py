"""A program that changes files of a mount: one JSON request a line, one answer a line."""

import errno
import json
import mmap
import os
import random
import sys


class Rewriter:
    """One open file at a time, and its mapping where the file system allows that."""

    def __init__(self) -> None:
        self.file = -1
        self.mapped: mmap.mmap | None = None
        self.readable = False

    def open(self, path: str, flags: int) -> bool:
        self.close()
        self.file = os.open(path, flags)
        self.readable = flags & os.O_ACCMODE != os.O_WRONLY
        if flags & os.O_ACCMODE == os.O_RDWR:
            try:
                self.mapped = mmap.mmap(self.file, 0)
            except OSError as error:
                if error.errno != errno.ENODEV:
                    raise
        return self.mapped is not None

    def close(self) -> bool:
        if self.mapped is not None:
            self.mapped.close()
        if self.file >= 0:
            os.close(self.file)
        self.file, self.mapped = -1, None
        return True

    def write(self, start: int, data: str, piece: int) -> bool:
        new = _bytes(data)
        for at in range(0, len(new), piece):
            assert os.pwrite(self.file, new[at : at + piece], start + at) == len(
                new[at : at + piece]
            )
        return True

    def store(self, start: int, data: str) -> bool:
        """Through the mapping."""
        new = _bytes(data)
        assert self.mapped is not None
        self.mapped[start : start + len(new)] = new
        return True

    def look(self) -> list[str]:
        """The content of the file, as `read` and the mapping have it, where it can be read."""
        found = [] if self.mapped is None else [self.mapped[:].hex()]
        if self.readable:
            found.append(os.pread(self.file, os.fstat(self.file).st_size, 0).hex())
        return found

    def sync(self) -> bool:
        if self.mapped is not None:
            self.mapped.flush()
        if self.file >= 0:
            os.fsync(self.file)
        return True

    def truncate(self, path: str) -> bool:
        """As `cp` and shells do before they write; the kernel then has to ask for the size."""
        size = os.stat(path).st_size
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
        while os.stat(path).st_size != size:
            pass
        return True


def _bytes(data: str) -> bytes:
    """From their hexadecimal digits, or as many as SEED:SIZE says."""
    seed, _, size = data.partition(":")
    return random.Random(int(seed)).randbytes(int(size)) if size else bytes.fromhex(data)


if __name__ == "__main__":
    rewriter = Rewriter()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(rewriter, name)(*arguments)
        except OSError as error:
            if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED):
                raise
            break  # the mount was killed
        print(json.dumps(answer), flush=True)
