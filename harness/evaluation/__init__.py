"""The judge owns the problem, the secret seeds, the inputs, the truth, the clock and the verdict."""
