"""Folders, ports and configuration files of a testbed. Starts no process."""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
CGROUPS = Path("/sys/fs/cgroup/memory")
LONGEST = 70   # characters in the folder's path: a socket's path may have 107, and SLURM appends node, job and step


def say(words: str) -> None:
    """Print a message to standard error; standard output is for the line that a shell evaluates."""
    print(f"testbed: {words}", file=sys.stderr, flush=True)


def loopback_name() -> str:
    """Return the host name for the daemons: this host's short name if it resolves to loopback, else ``localhost``.

    SLURM's daemons listen on the address of their host's name.
    """
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None, socket.AF_INET)}
    except OSError:
        found = set()
    return name.split(".")[0] if found == {"127.0.0.1"} else "localhost"


def has_cgroups() -> bool:
    """Return whether the kernel can limit memory (by cgroups v1: SLURM 22.05 requires systemd for v2)."""
    return (CGROUPS / "memory.memsw.limit_in_bytes").exists() and os.access(CGROUPS / "cgroup.procs", os.W_OK)


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports on loopback that are free now."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


@dataclass(frozen=True)
class Size:
    """The declared size of a testbed; the machine need not have it."""

    nodes: int = 3
    cpus: int = 4            # per node
    memory: int = 8000       # MB per node
    gpus: int = 2            # per node
    accounting: bool = True


@dataclass(frozen=True)
class Layout:
    """One testbed: its folder, its size, and the host name and ports of its daemons."""

    folder: Path
    size: Size
    host: str
    ports: list[int]         # the controller's, the accounting daemon's, one per node
    cgroups: bool            # whether the kernel limits the jobs' memory

    @classmethod
    def new(cls, folder: Path, size: Size) -> Layout:
        """Return the layout of a new testbed on free ports."""
        return cls(folder, size, loopback_name(), free_ports(2 + size.nodes), has_cgroups())

    @classmethod
    def read(cls, folder: Path) -> Layout | None:
        """Return the layout of the testbed in a folder, if any."""
        try:
            kept = json.loads((folder / "testbed.json").read_text())
        except FileNotFoundError:
            return None
        return cls(folder, Size(**kept["size"]), kept["host"], kept["ports"], kept["cgroups"])

    @property
    def nodes(self) -> list[str]:
        """Return the nodes' names."""
        return [f"n{i + 1}" for i in range(self.size.nodes)]

    @property
    def daemons(self) -> list[str]:
        """Return the names of all daemons, in the order of starting."""
        return ["munged", *(["mariadbd", "slurmdbd"] if self.size.accounting else []), "slurmctld", *self.nodes]

    @property
    def conf(self) -> Path:
        """Return the path for SLURM_CONF."""
        return self.folder / "slurm.conf"

    @property
    def environ(self) -> dict[str, str]:
        """Return this process's variables without those of a job, plus those that SLURM's programs need."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SRUN"))}
        return {**own, "SLURM_CONF": str(self.conf), "MYSQL_UNIX_PORT": str(self.folder / "database" / "socket")}

    def logs(self, daemon: str) -> tuple[Path, Path]:
        """Return the paths of a daemon's log and of its standard output."""
        return self.folder / "log" / f"{daemon}.log", self.folder / "log" / f"{daemon}.out"

    def write(self) -> None:
        """Create the folder, its key and its configuration files; first ``testbed.json``, which marks a testbed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)                       # munge rejects a socket below a folder that others may write
        kept = {"size": asdict(self.size), "host": self.host, "ports": self.ports, "cgroups": self.cgroups}
        (self.folder / "testbed.new").write_text(json.dumps(kept))
        (self.folder / "testbed.new").rename(self.folder / "testbed.json")
        for name in ("munge", "log", "state", "spool", "gpus"):
            (self.folder / name).mkdir()
        key = self.folder / "munge" / "key"
        key.touch(0o400)
        key.chmod(0o600)
        key.write_bytes(os.urandom(128))
        for i in range(self.size.gpus):
            (self.folder / "gpus" / f"gpu{i}").symlink_to("/dev/null")
        self.conf.write_text(self._filled("slurm.conf.in"))
        (self.folder / "gres.conf").write_text(
            f"Name=gpu File={self.folder}/gpus/gpu[0-{self.size.gpus - 1}]\n" if self.size.gpus else "")
        if self.cgroups:
            (self.folder / "cgroup.conf").write_text(
                "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nAllowedSwapSpace=0\n")
        if self.size.accounting:
            secret = self.folder / "slurmdbd.conf"     # slurmdbd rejects a file that others may read
            secret.touch(0o600)
            secret.write_text(self._filled("slurmdbd.conf.in"))

    def _filled(self, template: str) -> str:
        gres = f" Gres=gpu:{self.size.gpus}" if self.size.gpus else ""
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={port} CPUs={self.size.cpus} "
            f"RealMemory={self.size.memory}{gres} State=UNKNOWN" for name, port in zip(self.nodes, self.ports[2:]))
        accounting = "AccountingStorageType=accounting_storage/none"
        if self.size.accounting:
            accounting = (f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
                          f"AccountingStoragePort={self.ports[1]}\nAccountingStoragePass={self.folder}/munge/socket\n"
                          "AccountingStorageTRES=gres/gpu")
        sampled = "TaskPlugin=task/none\nJobAcctGatherParams=OverMemoryKill"
        return Template((HERE / template).read_text()).substitute(
            folder=self.folder, host=self.host, controller_port=self.ports[0], database_port=self.ports[1],
            first_job=1000 * self.ports[0], nodes=nodes, accounting=accounting,
            memory="TaskPlugin=task/cgroup" if self.cgroups else sampled)
