"""Stale, or not there: data sets with outdated evidence, and questions whose evidence is taken away."""
