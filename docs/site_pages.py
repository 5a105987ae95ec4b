"""A hook of mkdocs: README, CHANGELOG and SECURITY are pages of the site too, and are kept once."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[1]
_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in _PAGES.items():
        if (_ROOT / source).exists():
            text = (_ROOT / source).read_text(encoding="utf-8")
            text = _LINK.sub(lambda link: f"]({_target(link[1], 'docs/')}{link[2] or ''})", text)
            files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return _LINK.sub(lambda link: f"]({_target(link[1], '../')}{link[2] or ''})", markdown)


def _target(link: str, prefix: str) -> str:
    """Where a link between files of the repository leads on the site."""
    name = link.removeprefix(prefix)
    return _PAGES.get(name, name)
