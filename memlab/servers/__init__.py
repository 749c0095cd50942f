"""Servers that run: their records, shared by all nodes of a cluster, and what a node knows of itself."""

CHANGES_RESULTS = False
OPENS_FILES_FOR = "itself"
