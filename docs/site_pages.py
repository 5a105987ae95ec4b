"""A hook of mkdocs: README, CHANGELOG and SECURITY are pages of the site too, and are kept once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[1]
_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Leaves out of the navigation what is not there; what is not in it is an error."""
    config.nav = _existing(config.nav)


def _existing(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for entry in entries:
        for title, target in entry.items():
            inner = _existing(target) if isinstance(target, list) else target
            if isinstance(inner, list) or _there(inner):
                kept.append({title: inner})
    return kept


def _there(page: str) -> bool:
    written = {name: source for source, name in _PAGES.items()}
    return (_ROOT / written.get(page, f"docs/{page}")).exists()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in _PAGES.items():
        if (_ROOT / source).exists():
            text = (_ROOT / source).read_text(encoding="utf-8")
            text = _LINK.sub(lambda link: f"]({_target(link[1], 'docs/')}{link[2] or ''})", text)
            files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return _LINK.sub(lambda link: f"]({_target(link[1], '../')}{link[2] or ''})", markdown)


def on_page_content(html: str, **_: object) -> str:
    """A bar in the code of a table cell is written with a backslash, which has to go."""
    return html.replace("\\|", "|")


def _target(link: str, prefix: str) -> str:
    """Where a link between files of the repository leads on the site."""
    name = link.removeprefix(prefix)
    return _PAGES.get(name, name)
