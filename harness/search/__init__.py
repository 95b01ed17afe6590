"""Multi-turn search: feedback for a model, and strategies that choose the turn to continue from."""
