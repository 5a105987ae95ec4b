"""``python -m tests.scale --arrays 10000``: see `tests.scale`."""

import argparse
import tempfile
from pathlib import Path

from tests.conftest import _pid, run_zarrfs
from tests.scale.hierarchy import make
from tests.scale.run import Scale, grown, run
from zarrfs.fuse.mount_table import topmost


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--arrays", type=int, default=10_000)
    parser.add_argument("--chunks", type=int, default=100, help="of each array, a name each")
    parser.add_argument("--handles", type=int, default=100_000, help="open at the same time")
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600, help="of work")
    parser.add_argument("--memory", default="512M", help="the mount's -o memory")
    arguments = parser.parse_args()
    scale = Scale(
        arguments.arrays, arguments.chunks, arguments.handles, arguments.processes,
        seconds=arguments.seconds,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        source, mnt, log = Path(place, "source"), Path(place, "mnt"), Path(place, "log")
        print(f"make {scale.arrays} arrays", flush=True)
        make(source, scale.arrays, scale.chunks)
        mnt.mkdir()
        options = f"rw,xattr,memory={arguments.memory},log_file={log},journal={place}/journal"
        done = run_zarrfs("mount", "-o", options, source, mnt, timeout=600)
        assert done.returncode == 0, done.stderr
        try:
            usages = run(scale, mnt, _pid(log))
        finally:
            ended = run_zarrfs("umount", mnt, timeout=600)
        assert ended.returncode == 0, ended.stderr
        assert topmost(str(mnt)) is None
        assert "Traceback" not in log.read_text(), log.read_text()[-3000:]
    if problems := grown(usages):
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
