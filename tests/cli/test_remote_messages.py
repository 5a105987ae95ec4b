"""A remote source that cannot be reached: exit 1, and one line that says why not."""

from collections.abc import Iterator

import pytest

from tests.cli.in_process import in_process
from tests.remote_server import RemoteServer

SECRET = "hunter2-very-secret"


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with RemoteServer() as server:
        server.make_bucket("bench")
        server.keys = frozenset({"good"})
        yield server


@pytest.fixture(autouse=True)
def environment(server, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """The ecosystem's own configuration, and none of whoever runs the tests."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "good",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": server.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


def refused(command: str, source: str, *options: str) -> str:
    """The one line that the command says."""
    words = [part for option in options for part in ("--storage-option", option)]
    shape = ["--shape=4", "--chunks=2", "--dtype=int8"] if command == "create" else []
    done = in_process(command, source, *shape, *words)
    assert done.status == 1, done
    assert done.stdout == ""
    assert SECRET not in done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(params=["info", "check"])
def command(request) -> str:
    return request.param


def test_wrong_credentials(command, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "bad")
    said = refused(command, "s3://bench/a")
    assert "s3://bench/a" in said
    assert "The AWS Access Key Id you provided does not exist" in said


def test_no_credentials(command, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert "Unable to locate credentials" in refused(command, "s3://bench/a")


def test_missing_bucket(command):
    said = refused(command, "s3://nobucket/a")
    assert "s3://nobucket/a" in said
    assert "The specified bucket does not exist" in said


@pytest.mark.parametrize("as_option", [True, False])
def test_unknown_profile(command, as_option, monkeypatch):
    if as_option:
        said = refused(command, "s3://bench/a", "profile=missing")
    else:
        monkeypatch.setenv("AWS_PROFILE", "missing")
        said = refused(command, "s3://bench/a")
    assert "profile (missing) could not be found" in said


@pytest.mark.parametrize(
    "option", [f"endpont_url={SECRET}", f'client_kwargs={{"endpont_url": "{SECRET}"}}']
)
def test_mistyped_option(command, option):
    assert "unknown storage option 'endpont_url'" in refused(command, "s3://bench/a", option)


def test_mistyped_option_of_http(command, server):
    said = refused(command, f"{server.url}/bench/a", f"hedaers={SECRET}")
    assert "unknown storage option 'hedaers'" in said


def test_endpoint_that_is_none(command):
    assert "Invalid endpoint: nowhere" in refused(command, "s3://bench/a", "endpoint_url=nowhere")


def test_creating_in_a_missing_bucket():
    said = refused("create", "s3://nobucket/a")
    assert "The specified bucket does not exist" in said
    assert "--overwrite" not in said
