"""HTTP evaluation service over the local executor, and adapters for RL frameworks. It needs the extra `serve`."""
