"""Evaluates candidates given as files: several of one problem, ranked, or one again at each change."""
