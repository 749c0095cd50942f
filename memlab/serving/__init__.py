"""Starting, watching and ending a model server (vLLM) that runs in an environment of its own."""
