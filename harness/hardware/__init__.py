"""Facts and state of this machine's hardware."""
