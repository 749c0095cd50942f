"""Costs of a run, a sweep and a job by size: python experiments/scaling/measure.py {haystacks,arms,slurm} [words]

haystacks: one arm on a growing number of embedded lives, cold and warm: seconds per slot, memory, bytes on disk.
arms:      a growing number of arms in one sweep on a warm store: seconds, report included.
slurm:     the same sweep from a cold store in one process and through SLURM (SLURM_CONF points to a cluster):
           processor time of both, and the overhead of SLURM. Further words go to both, such as data=locomo
           data.path=FILE; the word "packed" measures five arms per job only, not also one arm per job.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SLOTS = ("data", "chunk", "dense", "lexical", "score", "measure", "evaluate")


def run(*words: str, root: Path) -> tuple[float, float, str]:
    """Run a command line; return its wall time and processor time in seconds, and its output."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    line = [sys.executable, "-m", "memlab.run", *words, "track=none", f"out={root}/runs", f"store={root}/store"]
    process = subprocess.run(line, capture_output=True, text=True)
    if process.returncode:
        sys.exit(process.stdout + process.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu_seconds, process.stdout


def size(folder: Path) -> float:
    """Return the size of a folder in megabytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def haystacks() -> None:
    print("lives  turns  wall  " + "  ".join(f"{slot:>8}" for slot in SLOTS) + "  peak_gb  store_mb  run_mb  warm_wall")
    for lives in (5, 10, 20, 40, 80):
        root = Path(tempfile.mkdtemp())
        wall, _, _ = run(f"data.lives={lives}", root=root)
        folder = next((root / "runs").glob("single/*/*/manifest.json")).parent
        manifest = json.loads((folder / "manifest.json").read_text())
        warm, _, _ = run(f"data.lives={lives}", "rank.select.k=11", root=root)
        by_slot = "  ".join(f"{manifest['seconds'].get(slot, 0):8.2f}" for slot in SLOTS)
        turns, peak = manifest["made"]["vectors"], manifest["peak_memory_gb"]
        print(f"{lives:5d}  {turns:5d}  {wall:4.1f}  {by_slot}  {peak:7.2f}  "
              f"{size(root / 'store'):8.1f}  {size(folder):6.1f}  {warm:9.1f}", flush=True)
        shutil.rmtree(root)


def arms() -> None:
    root = Path(tempfile.mkdtemp())
    run(root=root)
    print("arms  wall  processor")
    for number in (1, 5, 10, 20, 40):
        shutil.rmtree(root / "runs")
        several = ("-m",) if number > 1 else ()
        wall, cpu, _ = run(*several, "rank.select.k=" + ",".join(map(str, range(1, number + 1))), root=root)
        print(f"{number:4d}  {wall:5.1f}  {cpu:5.1f}", flush=True)
    shutil.rmtree(root)


def slurm(words: list[str]) -> None:
    packed_only = "packed" in words
    words = [word for word in words if word != "packed"]
    swept = ["-m", "rank.select.k=" + ",".join(map(str, range(1, 31))), *words]
    local, remote = Path(tempfile.mkdtemp(dir=Path.cwd())), Path(tempfile.mkdtemp(dir=Path.cwd()))
    wall, local_cpu, _ = run(*swept, root=local)
    print(f"one process: {wall:.0f} s, processor {local_cpu:.0f} s", flush=True)
    for line in (["hydra.launcher.arms_per_job=5"], ["hydra.launcher.arms_per_job=1"])[: 1 if packed_only else 2]:
        shutil.rmtree(remote, ignore_errors=True)
        start = time.strftime("%Y-%m-%dT%H:%M:%S")
        wall, shell_cpu, _ = run(*swept, "hydra/launcher=slurm", "hydra.launcher.array_parallelism=6",
                                 "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=3.5", *line, root=remote)
        time.sleep(15)  # accounting is delayed
        output = subprocess.run(["sacct", "-n", "-P", "-S", start, "-o", "JobID,JobName,TotalCPU"], capture_output=True,
                                text=True, check=True).stdout.splitlines()
        rows = [row.split("|") for row in output]
        names = {job: name for job, name, _ in rows if "." not in job}
        jobs = dict.fromkeys(names.values(), 0.0)
        for job, _, cpu in rows:  # sacct counts processor time on a job's steps
            if "." in job:
                jobs[names[job.partition(".")[0]]] += seconds(cpu)
        total = sum(jobs.values()) + shell_cpu
        parts = ", ".join(f"{name} {cpu:.0f}" for name, cpu in jobs.items())
        print(f"{line[0]}: {wall:.0f} s, processor {total:.0f} s = {total / local_cpu:.2f} of one process "
              f"({parts}, shell {shell_cpu:.0f}; {len(names)} jobs)", flush=True)
    for folder in (local, remote):
        shutil.rmtree(folder, ignore_errors=True)


def seconds(clock: str) -> float:
    """Return the seconds in ``[DD-[HH:]]MM:SS.mmm``, SLURM's format."""
    days, _, rest = clock.rpartition("-")
    total = 0.0
    for part in rest.split(":"):
        total = total * 60 + float(part)
    return total + 86400 * int(days or 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    what, *more = sys.argv[1:] or ["haystacks"]
    {"haystacks": haystacks, "arms": arms, "slurm": lambda: slurm(more)}[what]()
