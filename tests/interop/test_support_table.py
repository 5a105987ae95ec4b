"""The page that says what zarrfs reads says what it reads."""

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "formats.py"


def test_up_to_date() -> None:
    """Every answer in the page is tried again; ``make docs`` writes it anew."""
    done = subprocess.run(
        [sys.executable, PAGE, "--check"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
