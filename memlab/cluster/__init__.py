"""Sweeps as jobs: their snapshot, schedule, submission and status. SLURM does the scheduling."""
