"""The manifests of docs/scale.md parse, and what they run is there."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import OPTIONS

PAGE = (Path(__file__).parents[2] / "docs/scale.md").read_text(encoding="utf-8")
# Of the cluster, or of those who use it.
THEIRS = {"srun", "./analyse"}
NAMES = {option.name for option in OPTIONS}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """Each use of zarrfs in a text, as words."""
    joined = text.replace("\\\n", " ").replace("'\"'\"'", "")
    found = re.findall(r"(?<![/\w-])zarrfs (?:mount|umount|status)[^;&\n')]*", joined)
    return [shlex.split(command.replace('"', "")) for command in found]


def check(words: list[str]) -> None:
    """Raises where zarrfs has no such command or option."""
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None, words
    known = {name for parameter in command.params for name in parameter.opts}
    for number, word in enumerate(words[2:], 2):
        if word.startswith("-"):
            assert word in known, word
        if words[number - 1] == "-o":
            assert {part.partition("=")[0] for part in word.split(",")} <= NAMES


def test_pods():
    (text,) = blocks("yaml")
    (pod,) = yaml.safe_load_all(text)
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    spec = pod["spec"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    containers: list[dict[str, Any]] = [*spec["initContainers"], *spec["containers"]]
    for container in containers:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    (sidecar,) = spec["initContainers"]
    (words,) = commands(" ".join(sidecar["args"]))
    check(words)
    # What it mounts is what the other container reads, and the probe waits for.
    place = words[-1]
    assert all(
        place.startswith(mount["mountPath"] + "/")
        for container in containers
        for mount in container["volumeMounts"]
        if mount["name"] == "mounts"
    )
    assert sidecar["startupProbe"]["exec"]["command"][-1].startswith(place + "/")
    assert spec["containers"][0]["command"][-1].startswith(place + "/")


@pytest.mark.parametrize("text", blocks("sh"))
def test_jobs(text):
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    found = commands(text)
    assert {words[1] for words in found} == {"mount", "umount"}
    for words in found:
        check(words)
    for line in text.replace("\\\n", " ").splitlines():
        if not line.startswith(("#", "export", "on_each_node", "trap")):
            assert line.split()[0] in THEIRS


def test_options_are_options():
    for names in re.findall(r"`-o ([a-z_]+)", PAGE):
        assert names in NAMES
