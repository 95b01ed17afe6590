"""The trusted side: owns the problem, secret seeds, inputs, truth, clock and verdict."""
