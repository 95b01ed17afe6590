"""Serves tools over the Model Context Protocol (MCP), with which a coding agent evaluates its programs."""
