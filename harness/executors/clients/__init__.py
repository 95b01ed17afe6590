"""Evaluates problem files that clients of a service send."""
