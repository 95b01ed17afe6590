"""Run evaluations on devices."""
