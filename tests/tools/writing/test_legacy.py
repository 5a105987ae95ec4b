"""Programs that know nothing of Zarr write into binary files; every implementation reads it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.interop.peers import READERS
from tests.mount.arrays import Target

FORTRAN = """
program change
  integer(2) :: plane(40, 50), old
  character(len=4096) :: path
  call get_command_argument(1, path)
  open(10, file=trim(path), access='stream', form='unformatted', status='old', action='readwrite')
  read(10, pos=1 + 2*7) old
  plane = 4321
  plane(1, 1) = old
  write(10, pos=1 + 2*40*50*33) plane
  close(10)
  open(11, file=trim(path), access='direct', recl=80, form='unformatted', status='old')
  write(11, rec=1 + 50*12 + 3) plane(:, 2)
  close(11)
end program
"""
PERL = (
    "open(F, '+<', $ARGV[0]) or die; binmode F; seek(F, 20002, 0);"
    "print F pack('v*', 1 .. 999) or die; close(F) or die $!"
)
MAPPED = (
    "import mmap, sys\n"
    "with open(sys.argv[1], 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:\n"
    "    m[100_001:100_011] = b'0123456789'\n"
    "    assert m.find(b'0123456789') == 100_001\n"
)


def run(*command: object, data: bytes | None = None) -> None:
    done = subprocess.run(
        [str(part) for part in command], input=data, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, (command, done.stderr)


@pytest.fixture
def fortran(tmp_path: Path) -> Path:
    (tmp_path / "change.f90").write_text(FORTRAN)
    run("gfortran", "-O0", "-o", tmp_path / "change", tmp_path / "change.f90")
    return tmp_path / "change"


def check(target: Target, file: Path, expected: np.ndarray) -> None:
    assert file.read_bytes() == expected.tobytes()
    for name, read in READERS.items():
        found = np.asarray(read(target.group / target.name))
        assert found.tobytes() == expected.tobytes(), name


def test_they_change_what_they_mean_to_change(file, sharded, fortran, tmp_path):
    expected = sharded.data.copy()
    flat = expected.reshape(-1)
    octets = flat.view(np.uint8)

    run(fortran, file)
    plane = np.full((50, 40), 4321, np.uint16)
    plane[0, 0] = flat[7]
    expected[33] = plane
    expected[12, 3] = 4321
    check(sharded, file, expected)

    run("perl", "-e", PERL, file)
    flat[10001:11000] = np.arange(1, 1000)
    check(sharded, file, expected)

    run("xxd", "-r", "-", file, data=b"000186a5: dead beef 00\n00000003: ff\n")
    octets[0x186A5 : 0x186A5 + 5] = list(bytes.fromhex("deadbeef00"))
    octets[3] = 0xFF
    check(sharded, file, expected)

    # A short block at the end, and one that begins within an element.
    new = np.random.default_rng(5).bytes(7001)
    run("busybox", "dd", f"of={file}", "bs=1000", "seek=11", "conv=notrunc", data=new)
    octets[11_000:18_001] = np.frombuffer(new, np.uint8)
    run("busybox", "truncate", "-s", expected.nbytes, file)
    check(sharded, file, expected)

    run("python3", "-c", MAPPED, file)
    octets[100_001:100_011] = list(b"0123456789")
    check(sharded, file, expected)

    # It writes the whole file from its beginning, as sound.
    sound = np.random.default_rng(6).integers(0, 1 << 16, flat.size, np.uint16)
    (tmp_path / "sound.raw").write_bytes(sound.tobytes())
    raw = ("-t", "raw", "-e", "signed-integer", "-b", "16", "-r", "8000", "-c", "1")
    run("sox", "-D", *raw, tmp_path / "sound.raw", *raw, file)
    check(sharded, file, sound.reshape(expected.shape))
