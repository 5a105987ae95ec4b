"""ImageJ opens an array by the name of a file, on a screen that nobody sees."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_program, run
from tests.tools.samples import NAMES, values

pytestmark = pytest.mark.timeout(150)

JAR = Path("/usr/share/java/ij.jar")
PICTURES = os.environ.get("ZARRFS_PICTURES")
"""Where `make pictures` has the pictures of the documentation written."""


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[str]:
    """The display of an X server of its own."""
    for program in ("Xvfb", "java", "import"):
        need_program(program)
    if not JAR.exists():
        pytest.skip("the program imagej is not installed: make test-tools installs it")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "860x600x24", "-nolisten", "tcp"],
        pass_fds=[writing], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writing)
    try:
        with os.fdopen(reading) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def imagej(screen: str, how: str, macro: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(
        ["java", "-cp", str(JAR), "ij.ImageJ", how, str(macro)],
        env=os.environ | {"DISPLAY": screen, "HOME": str(macro.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def test_it_opens_stacks_with_nothing_typed(screen, mounted, tmp_path):
    """Of the three types that it has; it saves them big-endian."""
    group = zarr.create_group(tmp_path / "g.zarr")
    for code in ("u1", "u2", "f4"):
        data = values(code, 3)
        array = group.create_array(
            code, shape=data.shape, chunks=(4, 4, 4), dtype=code, dimension_names=NAMES[3]
        )
        array[...] = data
    mount = mounted(tmp_path / "g.zarr")
    lines = []
    for code in ("u1", "u2", "f4"):
        lines += [f'open("{mount}/{code}/array.tif");', "getDimensions(w, h, c, s, f);",
                  "print(w, h, c, s, f, bitDepth());",
                  f'saveAs("Raw Data", "{tmp_path}/{code}.raw");', "close();"]  # fmt: skip
    macro = tmp_path / "read.ijm"
    macro.write_text("\n".join([*lines, 'run("Quit");']))
    with imagej(screen, "-batch", macro) as program:
        said = program.communicate(timeout=100)[0].decode()
    depth, height, width = values("u1", 3).shape
    assert [line.split() for line in said.splitlines() if line[:1].isdigit()] == [
        [str(n) for n in (width, height, 1, depth, 1, bits)] for bits in (8, 16, 32)
    ]
    for code in ("u1", "u2", "f4"):
        found = np.fromfile(tmp_path / f"{code}.raw", f">{code}").reshape(values(code, 3).shape)
        np.testing.assert_array_equal(found, values(code, 3))


def test_a_picture_of_a_mounted_array(screen, mounted, tmp_path):
    """The one in docs/tools.md."""
    data = cells()
    array = zarr.create_array(
        tmp_path / "cells.zarr", shape=data.shape, chunks=(16, 64, 64), shards=(64, 128, 128),
        dtype=data.dtype, dimension_names=("z", "y", "x"),
        attributes={"dimension_units": ["0.5 um", "0.25 um", "0.25 um"]},
    )  # fmt: skip
    array[...] = data
    mount = mounted(tmp_path / "cells.zarr")
    ready, seen, picture = (tmp_path / name for name in ("ready", "seen", "imagej.png"))
    macro = tmp_path / "show.ijm"
    macro.write_text(f"""
        open("{mount}/array.tif");
        setSlice(33);
        setMinAndMax(100, 3000);
        run("Set... ", "zoom=150 x=128 y=128");
        setLocation(20, 110);
        run("Z Project...", "projection=[Max Intensity]");
        setMinAndMax(100, 3000);
        run("Set... ", "zoom=150 x=128 y=128");
        setLocation(430, 110);
        wait(500);
        File.saveString("", "{ready}");
        for (i = 0; i < 300 && !File.exists("{seen}"); i++) wait(100);
        run("Quit");
    """)
    with imagej(screen, "-macro", macro) as program:
        for _ in range(600):
            if ready.exists() or program.poll() is not None:
                break
            time.sleep(0.1)
        assert ready.exists(), "ImageJ did not show it"
        run("import", "-display", screen, "-window", "root", picture)
        seen.touch()
        program.wait(60)
    # The slice is on the screen, in its grey values.
    run("convert", picture, "-crop", "384x384+24+126", "+repage", "-resize", "256x256!",
        "-depth", "8", f"gray:{tmp_path / 'shown'}")  # fmt: skip
    shown = np.fromfile(tmp_path / "shown", "u1").reshape(256, 256).astype(float)
    assert np.corrcoef(shown.ravel(), data[32].clip(100, 3000).ravel())[0, 1] > 0.9
    if PICTURES:
        shutil.copy(picture, PICTURES)


def cells() -> np.ndarray:
    """Blurred balls and noise."""
    dice = np.random.default_rng(7)
    z, y, x = np.ogrid[:64, :256, :256]
    image = np.zeros((64, 256, 256))
    for _ in range(120):
        at = dice.uniform((4, 8, 8), (60, 248, 248))
        radius, bright = dice.uniform(5, 13), dice.uniform(0.4, 1)
        squares = (((n - c) / r) ** 2 for n, c, r in zip((z, y, x), at, (0.6, 1, 1), strict=True))
        distance = sum(squares) / radius**2
        image = np.maximum(image, bright * np.exp(-(distance**2)))
    return (image * 3000 + dice.normal(200, 25, image.shape)).clip(0).astype("u2")
