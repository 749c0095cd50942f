"""No tracking, with the signature of W&B tracking, so that no caller asks whether tracking is on."""

from __future__ import annotations

from pathlib import Path

from memlab.stage import stage


@stage
class Off:
    """Publish nothing."""

    def publish(self, folder: Path) -> str | None:  # noqa: ARG002  (the signature of every track)
        """Return None; the finished folder is the record."""
        return None
