"""No tracking: the same signature as W&B's, so that no caller asks whether tracking is on."""

from __future__ import annotations

from pathlib import Path

from memlab.stage import stage


@stage
class Off:
    """Publishes nothing."""

    def publish(self, folder: Path) -> str | None:  # noqa: ARG002  (the signature of every track)
        """Return None; the finished folder is the record."""
        return None
