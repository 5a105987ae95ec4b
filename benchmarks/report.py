"""What was found, as lines."""

from __future__ import annotations

from benchmarks.measure import Limit, Outcome


def line(outcome: Outcome, limit: Limit) -> str:
    """One outcome for people who wait for it."""
    sign = "≥" if limit.kind == "at least" else "≤"
    met = "ok  " if limit.met(outcome.figure, limit.must) else "MISS"
    rates = ", ".join(
        f"{name} {outcome.rate(name):.4g} (±{(outcome.spread(name) - 1) * 50:.0f} %)"
        for name in outcome.seconds
    )
    return (
        f"{met} {outcome.row:14} {outcome.label:24} {outcome.figure:6.2f}{limit.unit} "
        f"({sign} {limit.must:g}) {outcome.unit}: {rates}"
    )
