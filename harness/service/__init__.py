"""HTTP evaluation service over the local executor, and adapters for RL frameworks. Imported late: needs the extra
`serve`."""
