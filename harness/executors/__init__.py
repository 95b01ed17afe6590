"""Runs evaluations on devices."""
