"""With no extra installed, everything works that needs none, and one line names the extra."""

import json
import os

import pytest

import zarrfs
from tests.conftest import run_python

EXTRAS = (
    "adlfs aiobotocore aiohttp azure boto3 botocore cfgrib dask distributed eccodes fastparquet "
    "gcsfs google.auth h5py hdf5plugin icechunk matplotlib msgpack obstore pandas pcodec pyarrow "
    "pyfuse3 s3fs tifffile trio xarray zarr zfpy"
)
PROGRAM = """
import json, sys
from importlib.abc import MetaPathFinder
absent = set(sys.argv[1].split())
class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from zarrfs.cli.main import cli, run
for command in json.loads(sys.argv[2]):
    print(json.dumps(command), file=sys.stderr)
    print(run(cli, "zarrfs", command), file=sys.stderr)
"""


def install(extra: str) -> str:
    return f"in a checkout of zarrfs: pip install '.[{extra}]'"


@pytest.mark.timeout(120)
def test_one_line_names_the_extra(tmp_path):
    zarrfs.create_array(tmp_path / "a", (8, 8), "u2", chunks=(4, 4)).close()
    references = {"version": 1, "refs": {".zgroup": '{"zarr_format": 2}'}}
    (tmp_path / "a.json").write_text(json.dumps(references))
    expected = {
        ("copy", "a", "memory://b"): (0, ""),
        ("check", "memory://b"): (0, ""),
        ("info", "a.json"): (0, ""),
        ("info", "memory://nothing"): (1, "no Zarr array or group"),
        ("info", "s3://bucket/a"): (2, install("s3")),
        ("copy", "a", "s3://bucket/a"): (2, install("s3")),
        ("info", "gs://bucket/a"): (2, install("gcs")),
        ("info", "az://bucket/a"): (2, install("azure")),
        ("info", "https://host.invalid/a"): (2, install("http")),
        ("info", "icechunk://a"): (2, install("icechunk")),
        ("check", "a", "--scheduler", "dask"): (2, install("dask")),
    }
    done = run_python(
        "-c",
        PROGRAM,
        EXTRAS,
        json.dumps(list(expected)),
        timeout=100,
        env={**os.environ},
        cwd=tmp_path,
    )
    lines = iter(done.stderr.splitlines())
    found = {}
    for line in lines:
        command = tuple(json.loads(line))
        said = []
        while (line := next(lines)).startswith("zarrfs: "):
            said.append(line)
        found[command] = (int(line), " ".join(said))
    assert found.keys() == expected.keys()
    for command, (status, part) in expected.items():
        assert found[command][0] == status, found[command]
        assert part in found[command][1], found[command]
