"""Files, folders, progress and interrupts: the machine, as every room uses it."""
