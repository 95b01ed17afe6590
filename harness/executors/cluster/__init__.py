"""Evaluates on the nodes of a Ray cluster. Needs the extra `ray`, imported late."""
