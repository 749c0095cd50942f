"""Running a sweep as jobs: what they are, what they run from, what becomes of them. SLURM does the scheduling."""
