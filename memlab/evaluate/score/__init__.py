"""Scores of rankings that other software made: runs in, arms with metrics, intervals and a report out."""
