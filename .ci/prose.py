#!/usr/bin/env python3
"""Fails on words and sentences that readers in a hurry, or in a second language, stumble over.

Checked are the Markdown pages, and the docstrings, comments, messages and names of the package.
What is quoted as code is not.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[1]
# Written by a program, or a list of names.
_NOT_PAGES = ("docs/formats.md",)

_WORDS = {
    r"[Ff]orgiving": "name the actor and the effect: 'one bad array does not affect the others'",
    r"[Ww]hoever": "name the actor: reader, writer, program, caller",
    r"[Ss]omebody|[Ss]omeone": "name the actor: reader, writer, program, caller",
    r"(?:is|are|was|were|be|been) told": "say who gets what: 'the caller gets the error'",
    r"good for": "say what it does",
    r"owed?": "say who has to do what",
    r"[Aa] word on|on the word of": "say what is trusted",
    r"at hand": "'available', 'in memory', 'cached'",
    r"all the same": "'nevertheless', or two sentences",
    r"put right|puts right": "'repair', 'correct'",
    r"goes? on with": "'continue'",
    r"takes? away": "'remove'",
    r"has .{1,30} done by": "name the actor",
    r"as it goes|how it goes|how it is doing": "'state', 'progress'",
    r"is there already": "'exists'",
    r"where .{1,40} is at hand": "'if … is available'",
}
# In what programs print, a reader has no other sentence that explains these.
_MESSAGES = _WORDS | {
    r"(?<!there )(?:is|are|was|were) no (?!longer|more)\w+": "'is not a …', 'has no …'",
    r"[Ee]verybody|[Nn]obody": "name the actor: every user, no program",
    r"(?<!did )tells?|told": "'says', 'has', 'reports'",
    r"(?:is|are) (?:not )?there": "'exists', 'does not exist'",
    r"meanwhile": "'at the same time', 'since'",
    r"how it .{1,10} doing|how it goes": "'state', 'progress'",
}
# Parts of names between underscores.
_NAMES = {
    "told": "say what it is: 'reported', 'given', 'identity'",
    "at_hand": "'peek', 'in_memory', 'cached'",
    "apart": "'separate', 'disjoint'",
    "stuck": "'hung'",
    "left_over|Left": "'remains', 'rest'",
    "concerns?": "'relates_to', 'affects'",
    "with_what": "name the result",
}
_SENTENCES = {
    r"(?:^|(?<=[.!?] ))(?:What|Whoever|Of (?!course)[a-z]+)\b(?![^.?!]{0,200}\?)": (
        "begin with the actor, not with 'What', 'Whoever' or 'Of'"
    ),
}


def main() -> int:
    found = sorted(
        f"{path.relative_to(_ROOT)}:{line}: {text!r}: {advice}"
        for path in _paths()
        for line, text, advice in _problems(path)
    )
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


def _paths() -> Iterator[Path]:
    yield from (_ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))
    for page in sorted((_ROOT / "docs").rglob("*.md")):
        if str(page.relative_to(_ROOT)) not in _NOT_PAGES:
            yield page
    yield from sorted((_ROOT / "zarrfs").rglob("*.py"))


def _problems(path: Path) -> Iterator[tuple[int, str, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _found(_messages(text), _MESSAGES)
        yield from _names(text)
    parts = _python(text) if path.suffix == ".py" else _markdown(text)
    yield from _found(parts, _WORDS, _SENTENCES)


def _found(
    parts: Iterable[tuple[int, str]], words: Mapping[str, str], sentences: Mapping[str, str] = {}
) -> Iterator[tuple[int, str, str]]:
    for line, part in parts:
        plain = re.sub(r"``[^`]*``|`[^`]*`", "`code`", part)
        plain = " ".join(plain.split())
        for pattern, advice in words.items():
            for match in re.finditer(rf"\b(?:{pattern})\b", plain):
                yield line, match[0], advice
        for pattern, advice in sentences.items():
            for match in re.finditer(pattern, plain):
                yield line, plain[match.start() : match.start() + 40], advice


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table rows with their lines; neither code nor comments."""
    text = re.sub(r"```.*?```|<!--.*?-->", _blank, text, flags=re.DOTALL)
    start, kept = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#"):
            stripped = ""  # a title may be a question
        begins = not stripped or stripped[0] in "#|>" or re.match(r"[-*] |\d+\. ", stripped)
        if begins:
            if kept:
                yield start, kept
            start, kept = number, re.sub(r"^(?:[-*#>]+ |\d+\. |\|)+", "", stripped)
        else:
            kept = f"{kept} {stripped}" if kept else stripped
            start = start if kept != stripped else number
    if kept:
        yield start, kept


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _messages(text: str) -> Iterator[tuple[int, str]]:
    """Text of several words that a program may print, with "…" for what is filled in."""
    tree = ast.parse(text)
    not_printed = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            not_printed.update(id(part) for part in node.values)
            words = "".join(
                part.value if isinstance(part, ast.Constant) else "…" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = "" if id(node) in not_printed else node.value
        else:
            continue
        if words.count(" ") > 1:
            yield node.lineno, words


def _names(text: str) -> Iterator[tuple[int, str, str]]:
    """Names that the text defines or uses, if they have a word of `_NAMES`."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for words, advice in _NAMES.items():
                if re.search(rf"(?:^|_)(?:{words})(?:_|$)", token.string):
                    yield token.start[0], token.string, advice


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings and comments with their lines."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and (said := ast.get_docstring(node)):
            line = node.body[0].lineno
            for paragraph in re.split(r"\n\s*\n|\n(?=\w+ : )", said):
                yield line, re.sub(r"^[\w, ]+ : ", "", paragraph)
    kept: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if line != last + 1 and kept:
            yield start, " ".join(kept)
            kept = []
        if not kept:
            start = line
        kept.append(token.string.lstrip("#: "))
        last = line
    if kept:
        yield start, " ".join(kept)


if __name__ == "__main__":
    sys.exit(main())
