"""The untrusted process that runs the candidate. No other package imports it."""
