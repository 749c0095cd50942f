"""Sweeps as jobs: snapshot, schedule, submission and status."""
