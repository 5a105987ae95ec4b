"""Every command that README and docs show is run, and says what they show."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, matches, pages
from tests.docs.prepared import prepare
from tests.docs.session import Session

BLOCKS = {page: blocks(page) for page in pages()}
NOT_RUN = [block for found in BLOCKS.values() for block in found if block.not_run]
SHOWING = [page for page, found in BLOCKS.items() if any(not block.not_run for block in found)]
# Its commands are true ones, started anew.
PLAIN = "recovery.md"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs") / "data"
    directory.mkdir()
    prepare(directory)
    return directory


@pytest.fixture
def cloud(page: Path, data: Path) -> Iterator[Mapping[str, str]]:
    """A service of S3's kind where a page needs one: its ``s3://bucket`` holds ``/data``."""
    if not any(
        "s3://" in command.text
        for block in BLOCKS[page]
        if not block.not_run
        for command in block.commands
    ):
        yield {}
        return
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        environment = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        _fill(environment, data)
        yield environment
    finally:
        server.stop()


def _fill(environment: Mapping[str, str], data: Path) -> None:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    for path in sorted(data.rglob("*")):
        if path.is_file() and ".zarr" in str(path):
            client.put_object(
                Bucket="bucket", Key=str(path.relative_to(data)), Body=path.read_bytes()
            )


@pytest.mark.mount
@pytest.mark.timeout(200)
@pytest.mark.parametrize("page", SHOWING, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path, data: Path, cloud: Mapping[str, str]) -> None:
    # Whatever replaces a file makes a new one; what is linked stays as it is.
    shutil.copytree(data, tmp_path / "data", copy_function=os.link)
    shutil.copy2(data / "new.raw", tmp_path / "data" / "copy")
    os.replace(tmp_path / "data" / "copy", tmp_path / "data" / "new.raw")
    run = [block for block in BLOCKS[page] if not block.not_run]
    commands = [command for block in run for command in block.commands]
    results = iter(Session(tmp_path, cloud, forks=page.name != PLAIN).run(commands))
    problems = []
    for block in run:
        for number, command in enumerate(block.commands, 1):
            result = next(results, None)
            if result is None:
                problems.append(f"{block.place}: never run: {command.text}")
                break
            fails = block.fails and number == len(block.commands)
            if (result.status != 0) != fails:
                problems.append(
                    f"{block.place}: ended with {result.status}: {command.text}\n{result.said}"
                )
            if command.output is not None and not matches(command.output, result.said):
                problems.append(
                    f"{block.place}: {command.text}\nshown:\n{command.output}\nsaid:\n{result.said}"
                )
    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_not_run(block: Block) -> None:
    """Each one is told with its reason, so that their number is seen."""
    assert block.not_run != "no reason"
    assert block.commands
    pytest.skip(f"not run: {block.not_run}")


def test_the_runner_sees_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo a \\\n  b\na …\n$ cat <<X\nc\nX\nd\n$ false\n```\n\n"
        "<!-- not run: luck -->\n```sh\nx\n```\n\n<!-- before: y=5 -->\n```sh\necho $y\n```\n"
    )
    first, second, third = blocks(page)
    assert (first.not_run, second.not_run, third.not_run) == (None, "luck", None)
    results = Session(tmp_path, {}).run([*first.commands, *third.commands])
    assert [result.status for result in results] == [0, 0, 1, 0, 0]
    assert [result.said for result in results] == ["a b\n", "c\n", "", "", "5\n"]
    shown = [command.output for command in first.commands]
    assert shown == ["a …", "d", None]
    assert matches("a …", results[0].said)
    assert not matches("d", results[1].said)
    assert matches("a\n…\nb", "a\nb\n")
    assert matches("a\n…\nb …", "a\nx\nb  y\n")
