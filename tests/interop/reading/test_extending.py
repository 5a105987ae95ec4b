"""Another package's data type and codec, as docs/extending.md has them, installed and mounted."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "extending.md"
SHAPE, CHUNKS = (7, 5), (4, 3)
KEY = 90


def code(language: str) -> str:
    """The one block of the page in this language."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block


def make_wheel(directory: Path) -> Path:
    """What a build of the page's package gives."""
    project = tomllib.loads(code("toml"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    entry_points = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in members.items())
        for group, members in project["entry-points"].items()
    )
    files = {
        f"{name}.py": code("python"),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry_points,
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    wheel = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return wheel


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package, beside whatever is installed."""
    target = tmp_path_factory.mktemp("installed")
    wheel = make_wheel(tmp_path_factory.mktemp("wheel"))
    pip = [sys.executable, "-m", "pip", "--quiet", "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", target, wheel], check=True, timeout=60)
    return target


@pytest.fixture
def colours(tmp_path: Path) -> tuple[Path, bytes]:
    """An array that only the package's data type and codec can read, and its elements."""
    array = tmp_path / "group" / "colours.zarr"
    array.mkdir(parents=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": "acme.rgb",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNKS}},
        "chunk_key_encoding": {"name": "v2"},
        "fill_value": "#ff8000",
        "codecs": ["bytes", {"name": "acme.xor", "configuration": {"key": KEY}}],
    }
    (array / "zarr.json").write_text(json.dumps(document))
    whole = np.empty((*SHAPE, 3), "u1")
    whole[:] = 0xFF, 0x80, 0x00
    chunk = np.random.default_rng(5).integers(0, 256, (*CHUNKS, 3), "u1")
    whole[: CHUNKS[0], : CHUNKS[1]] = chunk
    # The other chunks are not stored.
    (array / "0.0").write_bytes((chunk ^ np.uint8(KEY)).tobytes())
    return array, whole.tobytes()


@pytest.mark.mount
def test_mounted(
    installed: Path,
    colours: tuple[Path, bytes],
    mounted: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, elements = colours
    monkeypatch.setenv("PYTHONPATH", str(installed))
    place = mounted(source)
    assert (place / "array.bin").read_bytes() == elements
    loaded = np.load(place / "array.npy", mmap_mode="r")
    assert loaded.dtype.names == ("red", "green", "blue")
    assert loaded.tobytes() == elements


@pytest.mark.mount
def test_what_the_codec_finds_damaged_is_an_error(
    installed: Path,
    colours: tuple[Path, bytes],
    mounted: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, _ = colours
    (source / "0.0").write_bytes(b"short")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    place = mounted(source, quiet=False)
    with pytest.raises(OSError, match="Input/output error"):
        (place / "array.bin").read_bytes()
    stats = json.loads((place / ".zarrfs" / "stats.json").read_text())
    assert "has 5 bytes, expected 36" in str(stats["errors"])


@pytest.mark.mount
def test_without_the_package(colours: tuple[Path, bytes], mounted: Callable[..., Path]) -> None:
    """In a group, so that there is something to mount."""
    source, _ = colours
    group = source.parent
    group.joinpath("zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    place = mounted(group, quiet=False)
    note = (place / source.name / "zarrfs-note.txt").read_text()
    assert "unknown data type 'acme.rgb'" in note or "unknown codec 'acme.xor'" in note
