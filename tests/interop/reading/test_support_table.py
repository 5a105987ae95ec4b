"""The page that says what zarrfs reads says what it reads."""

from pathlib import Path

from tests.conftest import run_python

PAGE = Path(__file__).parents[3] / "docs" / "formats.py"


def test_up_to_date() -> None:
    """Every answer in the page is tried again; ``make docs`` writes it anew."""
    done = run_python(PAGE, "--check", timeout=100)
    assert done.returncode == 0, done.stderr
