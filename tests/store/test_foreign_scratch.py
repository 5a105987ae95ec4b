"""What others laid where our temporary files lie is not used, not followed, not waited for."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_python
from zarrfs.errors import StoreError
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)

SCRATCH = f".zarrfs-tmp-{os.geteuid()}"
TOKEN = "0123456789abcdef"
NOBODY = 65534

# Exits with 3 where the store refuses.
WORKS = """
import sys
from zarrfs.errors import StoreError
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore
store = LocalStore(sys.argv[1])
print(store.leftovers(remove=False), store.leftovers(remove=True))
try:
    store.put("x", [b"new"], expected=ANY)
except StoreError as error:
    sys.exit(f"refused: {error}")
store.close()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_bytes(b"precious")
    return root


def works(root: Path) -> str:
    """What a process says that looks for leftovers and writes; it must not hang."""
    done = run_python("-c", WORKS, str(root), timeout=30)
    assert done.returncode == 0 or done.stderr.startswith("refused:"), done.stderr
    return done.stdout + done.stderr


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to(path.parents[2] / "outside/precious")


def directory(path: Path) -> None:
    path.mkdir()


KINDS = (fifo, link, directory)


@pytest.mark.parametrize("make", [fifo, lambda path: path.write_bytes(b"")], ids=["fifo", "file"])
def test_something_else_in_its_place(root, make):
    make(root / SCRATCH)
    said = works(root)
    assert "[] []" in said
    assert f"{SCRATCH} is in the way" in said
    assert (root / SCRATCH).exists()


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", [f"{TOKEN}.lock", f"{TOKEN}.0", f"{TOKEN}.1.beside"])
def test_no_regular_files_in_it(root, make: Callable[[Path], None], name):
    (root / SCRATCH).mkdir(0o700)
    make(root / SCRATCH / name)
    assert works(root) == "[] []\n"
    assert (root / "x").read_bytes() == b"new"
    assert os.path.lexists(root / SCRATCH / name)
    assert (root.parent / "outside/precious").read_bytes() == b"precious"


@pytest.mark.parametrize("name", [f"{TOKEN}.0.beside", f"{TOKEN}.lock"], ids=["note", "lock"])
def test_a_file_that_is_replaced_by_a_fifo_while_it_is_looked_at(root, monkeypatch, name):
    (root / SCRATCH).mkdir(0o700)
    file = root / SCRATCH / name
    file.write_bytes(b"./x")
    real = os.open

    def swap(path, *arguments, **keywords):
        if path == os.fsencode(name):
            file.unlink()
            os.mkfifo(file)
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", swap)
    store = LocalStore(root)
    # Does not wait for the other end of the FIFO.
    assert store.leftovers(remove=False) == []
    store.close()


def test_a_note_that_leads_out_of_the_store(root):
    (root / SCRATCH).mkdir(0o700)
    outside = root.parent / "outside" / f".zarrfs-tmp-{TOKEN}.0"
    outside.write_bytes(b"")
    for number, path in enumerate((f"../outside/{outside.name}", f"{outside}", "\0")):
        (root / SCRATCH / f"{TOKEN}.{number}.beside").write_text(path)
    store = LocalStore(root)
    with contextlib.suppress(StoreError):
        store.leftovers(remove=True)
    store.close()
    assert outside.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to others")
class TestOfAnotherUser:
    def test_the_directory_is_not_used(self, root):
        (root / SCRATCH).mkdir(0o777)
        (root / SCRATCH / f"{TOKEN}.0").write_bytes(b"theirs")
        os.chown(root / SCRATCH, NOBODY, NOBODY)
        said = works(root)
        assert "[] []" in said
        assert "belongs to another user" in said
        assert (root / SCRATCH / f"{TOKEN}.0").exists()
        assert not (root / "x").exists()

    def test_a_file_is_no_leftover(self, root):
        (root / SCRATCH).mkdir(0o700)
        theirs = root / SCRATCH / f"{TOKEN}.0"
        theirs.write_bytes(b"theirs")
        os.chown(theirs, NOBODY, NOBODY)
        assert works(root) == "[] []\n"
        assert theirs.read_bytes() == b"theirs"


def test_a_directory_that_others_may_enter_is_made_private(root):
    (root / SCRATCH).mkdir()
    (root / SCRATCH).chmod(0o777)
    store = LocalStore(root)
    seen = []
    real = os.rename

    def look(*arguments, **keywords):
        seen.append((root / SCRATCH).stat().st_mode & 0o777)
        return real(*arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", look)
        store.put("x", [b"new"], expected=ANY)
    store.close()
    assert seen == [0o700]
