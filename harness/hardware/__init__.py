"""Reads facts and state of this machine's hardware."""
