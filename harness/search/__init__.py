"""Multi-turn search: the feedback that a model gets, and the strategies that choose what it goes on from."""
