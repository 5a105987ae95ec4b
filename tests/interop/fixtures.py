"""Arrays written by other people's software, and what is known of each.

They are not part of the project: ``ZARRFS_FIXTURES`` says where they are.
"""

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("ZARRFS_FIXTURES") or Path(__file__).parents[3] / "shared" / "fixtures")


@dataclass(frozen=True)
class Fixture:
    """One array; ``known`` is its entry in ``EXPECTED.json``."""

    name: str
    known: dict[str, Any]

    @property
    def path(self) -> str:
        """Below the root. A ``.zarray`` beside a ``zarr.json`` has an entry of its own."""
        return self.name.removesuffix("#v2")

    @property
    def source(self) -> Path:
        return ROOT / self.path

    @property
    def version(self) -> int:
        return int(self.known["zarr_format"])

    @property
    def hash(self) -> str | None:
        """Of what `matches` takes; None where no reader could decode the array."""
        return self.known.get("sha256")

    @property
    def view(self) -> str:
        """Name of the file whose content has the hash."""
        return "array.jsonl" if self.hash is not None and self.hash[:5] == "json:" else "array.bin"

    def matches(self, content: bytes) -> bool:
        """Whether `view` holds ``content``."""
        if self.view == "array.jsonl":
            values = [json.loads(line) for line in content.splitlines()]
            if "bytes" in str(self.known["dtype"]) or "vlen-bytes" in self.known["codecs"]:
                # Base64 in the file, Latin-1 in what was hashed.
                values = [base64.b64decode(value).decode("latin-1") for value in values]
            text = json.dumps(values, ensure_ascii=False)
            return f"json:{hashlib.sha256(text.encode()).hexdigest()}" == self.hash
        return hashlib.sha256(content).hexdigest() == self.hash


def load() -> list[Fixture]:
    """All of them; none where they are not there."""
    expected = ROOT / "EXPECTED.json"
    if not expected.is_file():
        return []
    return [Fixture(name, known) for name, known in json.loads(expected.read_text()).items()]


REFUSED = {
    # Drafts from before the specification was final.
    "keller-mark__pizzarr/inst/extdata/fixtures/v3/data.zarr.unz/data.zarr/": "'endian'",
    "zarr-developers__zarr-java/testdata/storage_transformer/exists": "storage transformer",
    # A type that has no other implementation, and two masks beside its elements.
    "zarrs__zarrs/zarrs/tests/data/v3/array_optional.zarr/array": "'optional'",
    "zarrs__zarrs/zarrs/tests/data/v3/array_optional_nested.zarr/array": "'optional'",
}
"""Starts of names of what is not served, with a part of the reason that must be given."""


def refusal(fixture: Fixture) -> str | None:
    """A part of the reason for which it must be refused; None if it must be served."""
    reasons = (reason for start, reason in REFUSED.items() if fixture.name.startswith(start))
    return next(reasons, None)
