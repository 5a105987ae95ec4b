"""What the wheel puts below ``share/``: man pages and completion, made from the commands.

And the documents that users look for: README, CHANGELOG, SECURITY.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMPLETIONS = {
    "bash": "share/bash-completion/completions/zarrfs",
    "zsh": "share/zsh/site-functions/_zarrfs",
    "fish": "share/fish/vendor_completions.d/zarrfs.fish",
}


class CustomBuildHook(BuildHookInterface):
    """Runs before a wheel is built; an editable installation has no use for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        sys.path[:0] = [self.root, str(Path(self.root, "share"))]
        import man_pages

        from zarrfs.cli.completion import SHELLS
        from zarrfs.cli.main import COMPLETE, cli

        made = Path(self.root, "build", "share")
        for page in man_pages.write(made / "man"):
            build_data["shared_data"][str(page)] = f"share/man/{page.parent.name}/{page.name}"
        for shell in SHELLS:
            script = made / shell.name
            text = shell(cli, {}, "zarrfs", COMPLETE).source()
            script.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(script)] = _COMPLETIONS[shell.name]
        for document in Path(self.root).glob("*.md"):
            build_data["shared_data"][str(document)] = f"share/doc/zarrfs/{document.name}"
