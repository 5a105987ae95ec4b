"""The library leaves the process of whoever uses it as it was."""

import subprocess
import sys
import threading

import pytest

from tests.fs.documents import LITTLE, array_document
from zarrfs.library.info import info

pytestmark = pytest.mark.timeout(60)

_BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "zstd",
        "clevel": 1,
        "shuffle": "shuffle",
        "typesize": 2,
        "blocksize": 0,
    },
}

_READ_AND_TELL = """
import sys
from numcodecs import blosc
blosc.use_threads = {before}
import zarrfs
with zarrfs.open_array(sys.argv[1], writable=True) as array:
    array[...] = 5
with zarrfs.open_array(sys.argv[1]) as array:
    assert (array[...] == 5).all()
print(blosc.use_threads)
"""


@pytest.fixture
def source(tmp_path):
    (tmp_path / "zarr.json").write_bytes(array_document((8, 8), (4, 4), codecs=[LITTLE, _BLOSC]))
    return str(tmp_path)


@pytest.mark.parametrize("before", [None, True])
def test_reading_blosc_leaves_its_threads_to_the_user(source, before):
    words = [sys.executable, "-c", _READ_AND_TELL.format(before=before), source]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{before}\n", "")


@pytest.mark.parametrize("imported_first", [True, False])
def test_a_process_of_zarrfs_itself_does_without_the_threads_of_blosc(imported_first):
    steps = ["import zarrfs.format.codecs.blosc", "own_process()"]
    code = ["from zarrfs.format.codecs.own_process import own_process"]
    code += steps if imported_first else reversed(steps)
    code.append("from numcodecs import blosc; print(blosc.use_threads)")
    words = [sys.executable, "-c", "\n".join(code)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_info_leaves_no_threads_behind(source):
    info(source)
    before = set(threading.enumerate())
    for _ in range(5):
        info(source)
    assert set(threading.enumerate()) <= before
