"""Opens file systems without a kernel."""

from tests.fs.fixtures import loop, mount

__all__ = ["loop", "mount"]
