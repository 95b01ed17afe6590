"""The routes of the evaluation service, one file per protocol."""
