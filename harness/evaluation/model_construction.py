"""Constructs a model of the candidate or a baseline in a worker, like the reference."""

from __future__ import annotations

from harness.evaluation.correctness.reference import Reference
from harness.sandbox.model_session import ModelSession, Weights


def construct_model(session: ModelSession, reference: Reference, *, compile_mode: str = "") -> Weights:
    """Load the reference's weights if names and shapes match."""
    problem = reference.loaded.problem
    session.construct(
        reference.seed,
        reference.loaded.init_inputs,
        compile_mode=compile_mode,
        training=problem.training,
        dtype=problem.dtype,
        call=reference.loaded.call,
        returned_inputs=reference.loaded.returned_inputs,
        constants=reference.loaded.constants,
    )
    return session.match_weights(reference.state)


def construct_with_state(session: ModelSession, reference: Reference, *, compile_mode: str = "") -> None:
    """Construct the model and set the state from which calls start. Raises CandidateFailure if the model lacks some of
    it.
    """
    construct_model(session, reference, compile_mode=compile_mode)
    session.hold_state(reference.changing)
    session.reset_state()
