"""Decoders in processes of their own: what becomes of one is the error of one chunk."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import run_python
from tests.waiting import gone, wait_until
from zarrfs.errors import DecodeError
from zarrfs.isolation.decoders import IsolatedDecoder

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def decoder():
    decoder = IsolatedDecoder("tests.unit.isolation.bad_decoder", patience=20.0)
    yield decoder
    decoder.close()


def ask(decoder, what, data=b"abc", size=3, memory=64 << 20):
    return decoder.decode({"do": what}, data, size=size, memory=memory)


def test_it_decodes(decoder):
    assert ask(decoder, "reverse") == b"cba"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("crash", r"crashed \(signal 11\)"),
        ("abort", r"crashed \(signal 6\)"),
        ("exit", "ended"),
        ("raise", "bad data"),
        ("short", "decodes to 2 bytes, expected 3"),
        ("lie", "with something else"),
        ("grow", "MemoryError|decodes to"),
    ],
)
def test_a_fault_is_the_error_of_one_chunk(decoder, what, words):
    with pytest.raises(DecodeError, match=words):
        ask(decoder, what)
    assert ask(decoder, "reverse") == b"cba"


def test_a_result_may_be_shorter_if_the_caller_says_so(decoder):
    assert decoder.decode({"do": "short"}, b"abc", size=3, memory=64 << 20, exact=False) == b"ab"
    with pytest.raises(DecodeError, match="decodes to 2 bytes, at most 1 are allowed"):
        decoder.decode({"do": "short"}, b"abc", size=1, memory=64 << 20, exact=False)


def test_one_that_prints_answers_all_the_same(decoder):
    assert ask(decoder, "print") == b"abc"
    assert ask(decoder, "reverse") == b"cba"


def test_one_that_hangs_is_killed():
    decoder = IsolatedDecoder("tests.unit.isolation.bad_decoder", patience=2.0)
    with pytest.raises(DecodeError, match="took too long"):
        ask(decoder, "hang")
    decoder.close()


def test_one_that_hangs_ends_with_its_parent():
    program = (
        "import os, threading; from tests.unit.isolation import test_isolated_decoders as t\n"
        "decoder = t.IsolatedDecoder('tests.unit.isolation.bad_decoder', patience=60.0)\n"
        "print(int.from_bytes(t.ask(decoder, 'pid', size=8), 'little'), flush=True)\n"
        "threading.Timer(1, os._exit, [0]).start(); t.ask(decoder, 'hang')\n"
    )
    child = int(run_python("-c", program, check=True).stdout)
    wait_until(lambda: gone(child))


@pytest.mark.parametrize("failing", ["socket.socketpair", "subprocess.Popen"])
def test_one_that_cannot_be_started_leaves_no_descriptor_open(decoder, monkeypatch, failing):
    """Where descriptors run short, they would never suffice again."""

    def fail(*_args, **_options):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(DecodeError, match="no process to decode it can be started"):
            ask(decoder, "reverse")
    assert os.listdir("/proc/self/fd") == before
    assert ask(decoder, "reverse") == b"cba"


def test_a_fork_closes_what_leads_to_the_processes_of_its_parent(decoder, monkeypatch):
    ask(decoder, "reverse")
    (process,) = decoder._idle
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(process, "owner", 0)
    ask(decoder, "reverse")
    (other,) = decoder._idle
    assert other is not process
    assert len(os.listdir("/proc/self/fd")) == before
    process._popen.kill()
    process._popen.wait()


def test_processes_are_used_again_and_no_more_than_processors(decoder):
    found = set()

    def pid():
        found.add(ask(decoder, "pid", size=8))

    for _ in range(5):
        pid()
    assert len(found) == 1
    with ThreadPoolExecutor(20) as pool:
        for asking in [pool.submit(pid) for _ in range(20)]:
            asking.result()
    assert len(found) <= os.cpu_count()


def test_large_data_go_both_ways(decoder):
    data = os.urandom(5 << 20)
    assert ask(decoder, "reverse", data, len(data)) == data[::-1]


def test_the_working_directory_is_not_imported_from(tmp_path, monkeypatch):
    (tmp_path / "struct.py").write_text("raise SystemExit('ran')")
    (tmp_path / "zarrfs.py").write_text("raise SystemExit('ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    decoder = IsolatedDecoder("tests.unit.isolation.bad_decoder")
    assert ask(decoder, "reverse") == b"cba"
    decoder.close()
