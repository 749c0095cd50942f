"""The store of one user's memory on disk."""

OPENS_FILES_FOR = "itself"
