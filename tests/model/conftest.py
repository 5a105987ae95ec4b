"""Opens file systems without a kernel."""

from __future__ import annotations

from tests.fs.fixtures import loop, mount

__all__ = ["loop", "mount"]
