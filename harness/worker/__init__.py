"""The untrusted process: it imports the candidate, calls it, and copies what it returned into shared memory.

Nothing else of `harness` imports this package, and it imports only `harness.domain` and `harness.protocol`. Whatever it
says is a claim. The one way to score from here is to return the right numbers, soon.
"""
