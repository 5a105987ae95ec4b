"""Completion in bash, zsh and fish: what may come next, and the scripts that ask for it.

The shell runs ``zarrfs`` with `zarrfs.cli.main.COMPLETE` set and the command line so far; click
finds the parameter that is being typed, and the types here know its values. With
``_ZARRFS_COMPLETE=bash_source`` the command prints the script for that shell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)
from click.types import StringParamType

# Unlike click's, this one asks with the line as it was typed: bash has split its words at =
# and : too, and replaces only what comes behind the last of these.
_BASH = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$'\\n' type value
    local kept=${line##*[[:space:]]}
    kept=${kept%%"${kept##*[=:]}"}
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *= ]] && compopt -o nospace
                COMPREPLY+=("${value#"$kept"}")
                ;;
        esac
    done < <(COMP_LINE=$line %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_SHELL_SPECIAL = re.compile(r"([^\w/.,:=+@%~-])")


@add_completion_class
class _Bash(BashComplete):
    source_template = _BASH

    def source(self) -> str:
        # Not click's, which runs bash to learn its version.
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        # With one character more the last word is always the one that is being typed.
        words = split_arg_string(os.environ["COMP_LINE"] + "_")
        return words[1:-1], words[-1][:-1]

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}," + _SHELL_SPECIAL.sub(r"\\\1", str(item.value))


@add_completion_class
class _Fish(FishComplete):
    # Unlike click's, this one leaves commas in values.
    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


SHELLS: tuple[type[ShellComplete], ...] = (_Bash, ZshComplete, _Fish)


class _Completed(StringParamType):
    """A text of which ``complete`` knows how what is typed may go on."""

    def __init__(self, complete: Callable[[str], Iterable[CompletionItem]]) -> None:
        self._complete = complete

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return list(self._complete(incomplete))


def _begun(words: Iterable[str], incomplete: str) -> Iterator[CompletionItem]:
    return (CompletionItem(word) for word in words if word.startswith(incomplete))


def _mount_points(incomplete: str) -> Iterator[CompletionItem]:
    """Where something of zarrfs is mounted."""
    from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, mounts

    paths = [entry.path for entry in mounts(FILE_SYSTEM_TYPE)]
    if not incomplete.startswith("/"):
        here = f"{os.getcwd()}/"
        nearby = [path.removeprefix(here) for path in paths if path.startswith(here)]
        paths = nearby if incomplete else [*nearby, *paths]
    return _begun(paths, incomplete)


def _data_types(incomplete: str) -> Iterator[CompletionItem]:
    """Names of data types that need nothing more to be said."""
    from zarrfs.format.text_forms import data_type_names

    return _begun(data_type_names(), incomplete)


def _mount_options(incomplete: str) -> Iterator[CompletionItem]:
    """The last of a list ``name,name=value``."""
    from zarrfs.daemon.options.options import OPTIONS

    before, comma, last = incomplete.rpartition(",")
    name, equals, value = last.partition("=")
    given = {item.partition("=")[0] for item in before.split(",")}
    for option in OPTIONS:
        if equals and option.name == name:
            for item in _begun(_choices(option.metavar), value):
                yield CompletionItem(f"{before}{comma}{name}={item.value}")
        elif not equals and option.name.startswith(last) and option.name not in given:
            text = f"{before}{comma}{option.name}{'=' if option.metavar else ''}"
            yield CompletionItem(text, help=option.help)


def _choices(metavar: str) -> list[str]:
    """The words of ``SECONDS|never|always`` that are meant as they stand."""
    words = metavar.split("|")
    placeholders = {word for word in words if len(word) > 1 and word.isupper()}
    return [word for word in words if word not in placeholders] if len(words) > 1 else []


def prepare(command: click.Command) -> None:
    """Gives the parameters of ``command`` types that know what may come.

    Only in a process that completes, and does nothing else with them.
    """
    from zarrfs.cli.control import ACTIONS

    named: dict[str, Callable[[str], Iterable[CompletionItem]]] = {
        "mountpoint": _mount_points,
        "actions": partial(_begun, ACTIONS),
        "mount_options": _mount_options,
        "dtype": _data_types,
    }
    for parameter in command.params:
        if parameter.type is not click.STRING:
            continue
        if (complete := named.get(parameter.name or "")) is not None:
            parameter.type = _Completed(complete)
        elif isinstance(parameter, click.Argument) or parameter.metavar == "FILE":
            parameter.type = click.Path()
