"""What pyfuse3 says of answers that nobody waits for is no error; all else that it says is."""

import errno
import logging
import os

import pytest

from zarrfs.fuse.session import worth_telling


@pytest.mark.parametrize(
    ("message", "arguments", "told"),
    [
        ("fuse_release(): fuse_reply_* failed with %s", (os.strerror(errno.ENOENT),), False),
        ("fuse_read(): fuse_reply_* failed with %s", (os.strerror(errno.EIO),), True),
        ("something else: %s", (os.strerror(errno.ENOENT),), True),
        ("nothing to fill in", (), True),
    ],
)
def test_what_is_told(message, arguments, told):
    record = logging.LogRecord("pyfuse3", logging.ERROR, "", 0, message, arguments, None)
    assert worth_telling(record) == told
