"""Send to the server what was published offline, each arm once.

The run folder is sent, not W&B's own offline file: the folder is the record, its id is the same, and online the run is
linked to the data and the models that it used. Markers are rewritten one by one, so an interrupted sync continues where
it stopped; W&B's own mark (``*.wandb.synced``) keeps ``wandb sync`` from sending the file again.
"""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from memlab.errors import MemlabError
from memlab.runtime.paths import expand
from memlab.track.record import PublishRecord, find_records
from memlab.track.wandb import WandbTrack, reset_refusals, server_given_up


@dataclass(frozen=True)
class Sent:
    """The result for one arm: where it was sent, or None; ``tried`` is false once the server is given up."""

    folder: Path
    where: str | None
    tried: bool = True


def missing_key() -> str | None:
    """Return an error message where neither WANDB_API_KEY nor the login's netrc has a key, else None."""
    host = urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").hostname or ""
    if os.environ.get("WANDB_API_KEY"):
        return None
    for path in (os.environ.get("NETRC"), "~/.netrc", "~/_netrc"):
        with suppress(OSError, MemlabError, netrc.NetrcParseError):
            if path and netrc.netrc(expand(path)).authenticators(host):
                return None
    return "there is no W&B account here, and nothing was sent. Fix: wandb login, or export WANDB_API_KEY=..."


def pending(root: Path) -> list[PublishRecord]:
    """Return the arms under a folder that were published offline and are not on a server yet."""
    return [record for record in find_records(root) if record.published().get("mode") == "offline"]


def sync(records: list[PublishRecord], project: str | None = None, entity: str | None = None) -> Iterator[Sent]:
    """Send arms, with the project, entity, group and tags of their offline run unless others are given."""
    reset_refusals()
    for record in records:
        if server_given_up():
            yield Sent(record.folder, None, tried=False)
            continue
        before = record.published()
        track = WandbTrack(mode="online", project=project or before.get("project") or "memlab",
                           entity=entity or before.get("entity"), group=before.get("group"),
                           tags=tuple(before.get("tags") or ()))
        where = track.publish(record.folder)
        if where and before:
            _mark_synced(Path(before["where"]))
        yield Sent(record.folder, where)


def _mark_synced(offline: Path) -> None:
    """Set the client's own mark that an offline run was sent; its folder may be gone by now."""
    for file in offline.glob("*.wandb"):
        file.with_suffix(".wandb.synced").touch()
