"""Start, stop and faults of a testbed cluster: a node without power, a controller that restarts."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from layout import CGROUPS, LONGEST, Layout, Size, say
from processes import Failed, ask, kill, members, running, start, wait_until

PACKAGES = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-client"}
ACCOUNTING = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server"}


def check(size: Size) -> None:
    """Raise ``Failed`` unless the daemons can be started on this machine."""
    if os.geteuid():
        raise Failed("SLURM's daemons must be started as root: run this as root (in a container, or with sudo)")
    needed = {**PACKAGES, **(ACCOUNTING if size.accounting else {})}
    if missing := sorted({package for program, package in needed.items() if not shutil.which(program)}):
        raise Failed(f"not installed: {' '.join(missing)}. On Debian and Ubuntu: apt-get install -y "
                     f"--no-install-recommends {' '.join(sorted(set(needed.values())))}"
                     + ("; --no-accounting needs no slurmdbd and mariadb-server" if size.accounting else ""))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Allow one command at a time per folder, by a lock on the parent folder, which leaves no file behind."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    above = os.open(folder.parent, os.O_RDONLY)
    try:
        fcntl.flock(above, fcntl.LOCK_EX)
        yield
    finally:
        os.close(above)


class Cluster:
    """The daemons of a layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def states(self) -> dict[str, str]:
        """Return each node's state as SLURM prints it (``idle``, ``down*``); empty while the controller is off."""
        if not all(running(self.layout, daemon) for daemon in ("munged", "slurmctld")):
            return {}                                  # sinfo would wait for them
        try:
            told = ask(self.layout, "sinfo", "-h", "-N", "-p", "main", "-o", "%N %T", seconds=10)
        except Failed:
            return {}
        return dict(line.split() for line in told.splitlines())

    def serves(self, nodes: list[str]) -> bool:
        """Return whether these nodes take jobs."""
        states = self.states()
        return bool(states) and all(states.get(node) in ("idle", "mixed", "allocated", "completing") for node in nodes)

    def whole(self) -> bool:
        """Return whether every daemon runs and every node takes jobs."""
        return all(running(self.layout, daemon) for daemon in self.layout.daemons) and self.serves(self.layout.nodes)

    def up(self) -> None:
        """Start everything in an empty folder; return when a job has run on every node."""
        began = time.monotonic()
        self.layout.write()
        self._munge()
        if self.layout.size.accounting:
            self._accounting()
        self.controller_on(wait=False)
        for node in self.layout.nodes:
            self._slurmd(node)
        wait_until("all nodes take jobs", lambda: self.serves(self.layout.nodes), 30, self.layout.logs("slurmctld")[0])
        nodes = str(self.layout.size.nodes)
        told = ask(self.layout, "srun", "-N", nodes, "-n", nodes, "--mem=50", "-t", "1", "-J", "ready",
                   "printenv", "SLURMD_NODENAME").split()
        if sorted(told) != sorted(self.layout.nodes):
            raise Failed(f"a job for all nodes ran on {told}")
        if self.layout.size.accounting:
            wait_until("accounting has that job", lambda: "COMPLETED" in ask(
                self.layout, "sacct", "-X", "-n", "-o", "state"), 30, self.layout.logs("slurmdbd")[0])
        say(f"a job ran on {', '.join(self.layout.nodes)}: ready after {time.monotonic() - began:.1f} s")

    def down(self) -> None:
        """Kill everything and remove the folder."""
        order = ["slurmctld", *self.layout.nodes, *(d for d in self.layout.daemons if d in ("slurmdbd", "mariadbd")),
                 "munged"]
        kill(self.layout, order)
        for node in self.layout.nodes:
            for place, _, _ in os.walk(CGROUPS / f"slurm_{node}", topdown=False):
                with suppress(OSError):                # a job of another testbed runs there
                    Path(place).rmdir()
        shutil.rmtree(self.layout.folder)

    def node_off(self, node: str) -> None:
        """Cut a node's power: kill its slurmd, its job steps and all their processes at once."""
        kill(self.layout, [self._known(node)])

    def node_on(self, node: str) -> None:
        """Start a node again, as after a reboot; return when it takes jobs."""
        if not running(self.layout, self._known(node)):
            kill(self.layout, [node])
            self._slurmd(node, "-b")
        wait_until(f"{node} takes jobs", lambda: self.serves([node]), 60, self.layout.logs(node)[0])

    def controller_off(self, gently: bool = False) -> None:
        """Kill the controller, which then loses its last seconds, or stop it gently; nodes and jobs continue."""
        if gently:
            for pid in running(self.layout, "slurmctld"):
                os.kill(pid, signal.SIGTERM)
            wait_until("the controller stops", lambda: not running(self.layout, "slurmctld"), 30,
                       self.layout.logs("slurmctld")[0])
        kill(self.layout, ["slurmctld"])

    def controller_on(self, wait: bool = True) -> None:
        """Start the controller with the queue that it saved; return when the powered nodes take jobs."""
        if not running(self.layout, "slurmctld"):
            start(self.layout, "slurmctld", ["slurmctld", "-D"])
        if wait:
            powered = [node for node in self.layout.nodes if running(self.layout, node)]
            wait_until("the controller answers", lambda: self.serves(powered), 60, self.layout.logs("slurmctld")[0])

    def _known(self, node: str) -> str:
        if node not in self.layout.nodes:
            raise Failed(f"no node {node}: the nodes are {', '.join(self.layout.nodes)}")
        return node

    def _slurmd(self, node: str, *more: str) -> None:
        (self.layout.folder / "spool" / node).mkdir(exist_ok=True)
        start(self.layout, node, ["slurmd", "-D", "-N", node, *more])

    def _munge(self) -> None:
        place = self.layout.folder / "munge"
        start(self.layout, "munged", ["munged", "--foreground", f"--socket={place}/socket", f"--key-file={place}/key",
                                      f"--pid-file={place}/pid", f"--seed-file={place}/seed",
                                      f"--log-file={self.layout.logs('munged')[0]}"])
        wait_until("munged answers", (place / "socket").is_socket, 10, self.layout.logs("munged")[1])

    def _accounting(self) -> None:
        place = self.layout.folder / "database"
        ask(self.layout, "mariadb-install-db", "--no-defaults", f"--datadir={place}", "--user=root",
            "--auth-root-authentication-method=socket", "--skip-test-db", seconds=120)
        start(self.layout, "mariadbd", [
            "mariadbd", "--no-defaults", f"--datadir={place}", f"--socket={place}/socket", f"--pid-file={place}/pid",
            "--user=root", "--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"])
        wait_until("the database answers", (place / "socket").is_socket, 60, self.layout.logs("mariadbd")[1])
        start(self.layout, "slurmdbd", ["slurmdbd", "-D"])
        wait_until("accounting answers", self._registered, 60, self.layout.logs("slurmdbd")[0])

    def _registered(self) -> bool:
        """Register this cluster with the accounting daemon; the controller does not start without it."""
        with suppress(Failed):
            ask(self.layout, "sacctmgr", "-i", "-Q", "add", "cluster", "testbed")
        with suppress(Failed):
            return "testbed" in ask(self.layout, "sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
        return False


def up(folder: Path, size: Size) -> Layout:
    """Return the layout of the testbed of this size in a folder, started if needed; a half-started one is removed."""
    check(size)
    if len(str(folder)) > LONGEST:
        raise Failed(f"--dir {folder} is longer than {LONGEST} characters: SLURM could not open its sockets there")
    with locked(folder):
        old = Layout.read(folder)
        if old and Cluster(old).whole():
            if old.size != size:
                raise Failed(f"{folder} holds a running testbed of another size ({old.size}): take it down first")
            say("already up")
            return old
        if old:
            say("removing a half-started testbed")
            Cluster(old).down()
        elif folder.exists() and {one.name for one in folder.iterdir()} - {"testbed.new"}:
            raise Failed(f"{folder} holds something else: give --dir an empty or a new folder")
        cluster = Cluster(Layout.new(folder, size))
        try:
            cluster.up()
        except BaseException:
            cluster.down()
            raise
        return cluster.layout


def down(folder: Path) -> None:
    """Kill all processes of the testbed in a folder and remove the folder; do nothing if there is none."""
    with locked(folder):
        if layout := Layout.read(folder):
            Cluster(layout).down()
        say("down")


def existing(folder: Path) -> Cluster:
    """Return the testbed in a folder; raise ``Failed`` if there is none."""
    if layout := Layout.read(folder):
        return Cluster(layout)
    raise Failed(f"no testbed in {folder}: start one with `testbed up --dir {folder}`")


def status(cluster: Cluster) -> bool:
    """Print the state of every daemon and node; return whether all is well."""
    states = cluster.states()
    for daemon in cluster.layout.daemons:
        pids = sorted(members(cluster.layout, daemon))
        print(f"{daemon:10} {states.get(daemon, 'up') if pids else 'off':12} {' '.join(map(str, pids))}")
    return cluster.whole()
