"""A hook of mkdocs: README, CHANGELOG and SECURITY are pages of the site too, and are kept once."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
_NOT_THERE = (".py", ".sh")
_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in _PAGES.items():
        if (_ROOT / source).exists():
            text = (_ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=_relinked(text, _ROOT)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    generated = page.file.src_uri in _PAGES.values()
    return markdown if generated else _relinked(markdown, _ROOT / "docs")


def on_page_content(html: str, **_: object) -> str:
    """A bar in the code of a table cell is written with a backslash, which has to go."""
    return html.replace("\\|", "|")


def _relinked(text: str, directory: Path) -> str:
    """``text`` of a file in ``directory``, with links that lead where things are on the site.

    A link to a file that is not on the site becomes its name.
    """

    def relinked(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(directory / link[2]))
        page = _PAGES.get(target.name) if target.parent == _ROOT else None
        if page is None and target.parent == _ROOT / "docs" and target.suffix not in _NOT_THERE:
            page = target.name
        if page is None and target.exists():
            return link[1]
        return f"[{link[1]}]({page or link[2]}{link[3] or ''})"

    return _LINK.sub(relinked, text)
