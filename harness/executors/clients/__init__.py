"""Evaluations of problem files that clients of a service send."""
