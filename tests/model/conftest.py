"""Opens file systems without a kernel, and draws the same examples in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.fs.fixtures import loop, mount

__all__ = ["loop", "mount"]

# Each example writes an array and opens it, which takes some milliseconds.
settings.register_profile(
    "model",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
