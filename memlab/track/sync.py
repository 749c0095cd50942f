"""Send to the server what was published offline, each arm once.

What is sent is the run folder, not W&B's own offline file: it is the record, its id is the same, and online the run is
linked to the data and the models that it used. Markers are rewritten one by one, so a sync that was cut off goes on
where it stopped; W&B's ``wandb sync`` is told by its own sign (``*.wandb.synced``) to leave the file alone.
"""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from memlab.track.record import Record, records
from memlab.track.wandb import WandbTrack, ask_again, given_up


@dataclass(frozen=True)
class Sent:
    """What became of one arm: where it is, None if it could not be sent; ``tried`` is false for those left over."""

    folder: Path
    where: str | None
    tried: bool = True


def without_key() -> str | None:
    """Say how to get at W&B where neither WANDB_API_KEY nor the login's netrc has a key; None where one has."""
    host = urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").hostname or ""
    if os.environ.get("WANDB_API_KEY"):
        return None
    for path in (os.environ.get("NETRC"), "~/.netrc", "~/_netrc"):
        with suppress(OSError, netrc.NetrcParseError):
            if path and netrc.netrc(Path(path).expanduser()).authenticators(host):
                return None
    return "there is no W&B account here, and nothing was sent. Fix: wandb login, or export WANDB_API_KEY=..."


def pending(root: Path) -> list[Record]:
    """Find the arms under a folder that were published offline and are not on a server yet."""
    return [one for one in records(root) if one.published().get("mode") == "offline"]


def sync(found: list[Record], project: str | None = None, entity: str | None = None) -> Iterator[Sent]:
    """Send arms, with the project, entity, group and tags of their offline run unless others are given."""
    ask_again()
    for one in found:
        if given_up():
            yield Sent(one.folder, None, tried=False)
            continue
        before = one.published()
        track = WandbTrack(mode="online", project=project or before.get("project") or "memlab",
                           entity=entity or before.get("entity"), group=before.get("group"),
                           tags=tuple(before.get("tags") or ()))
        where = track.publish(one.folder)
        if where and before:
            _leave_alone(Path(before["where"]))
        yield Sent(one.folder, where)


def _leave_alone(offline: Path) -> None:
    """Set the client's own sign that an offline run was sent; its folder may be gone meanwhile."""
    for file in offline.glob("*.wandb"):
        file.with_suffix(".wandb.synced").touch()
