"""Facts and state of the machine that this process runs on."""
