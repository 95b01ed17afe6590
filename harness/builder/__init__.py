"""Builds the extensions that candidates request, each at most once."""
