"""What tests of the browsing commands share."""

import json

SOURCE = "class ModelNew:\n    pass  # ü\n"


def read_lines(text):
    """The records of JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]
