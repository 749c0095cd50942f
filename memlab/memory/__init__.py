"""The store of one user's memory on disk."""
