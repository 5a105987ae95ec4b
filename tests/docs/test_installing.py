"""How to install zarrfs: from a checkout, as long as no package index has it."""

import re
from pathlib import Path

from zarrfs.errors import to_install

ROOT = Path(__file__).parents[2]
_INDEX = re.compile(
    r"""(?:pipx?|uv tool|uv pip) install (?:-\S+ )*['"\\]*zarrfs\b|install ['"\\]*zarrfs\["""
)
_KINDS = {".md", ".py", ".sh", ".toml", ".service", ".yml", ".in", ".txt"}


def pages() -> list[Path]:
    roots = [ROOT / name for name in ("zarrfs", "docs", "share", "systemd", ".ci")]
    found = [path for root in roots for path in root.rglob("*") if path.suffix in _KINDS]
    return [*found, *ROOT.glob("*.md"), ROOT / "Makefile"]


def test_no_page_and_no_message_names_a_package_of_an_index():
    assert _INDEX.search('pip install "zarrfs[s3]"')
    assert _INDEX.search("pipx install zarrfs")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in pages()
        for line in path.read_text(encoding="utf-8").splitlines()
        if _INDEX.search(line)
    ]
    assert found == []


def test_a_missing_extra_is_installed_from_a_checkout():
    assert to_install("s3") == "in a checkout of zarrfs: pip install '.[s3]'"
    assert "$ git clone" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_figures_are_on_their_page_and_seeds_in_its_appendix():
    assert "MB/s" not in (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert re.findall("^## (.*)", page, re.MULTILINE)[0] == "What to choose"
    before, appendix, _ = page.partition("## Appendix")
    assert appendix
    assert "seed" not in before.lower()
