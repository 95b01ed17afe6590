"""Tools with which a coding agent evaluates its programs, over the Model Context Protocol (MCP)."""
