"""Findings about an answer: alternative programs, truncation by the token limit, reasoning without an answer."""

from __future__ import annotations

from harness.domain import ONLY_REASONING, TRUNCATED, Alternative, Candidate, Completion, Extraction, Finding, Sample

EXTRACTION = "extraction"
FILE_RULE = "file"  # of an alternative that is no program: a named file that the program leaves out
_CUT_OFF = ("length", "max_tokens", "model_length", "model_context_window_exceeded")
REASONING_PARSER_HINT = (
    "the content of the answer is empty and its reasoning is not, and reasoning is not searched for programs: "
    "check the reasoning parser of the server (such as --reasoning-parser of vLLM and SGLang)"
)


def note_sample(sample: Sample) -> tuple[Finding, ...]:
    """Empty for candidates that were not extracted from an answer."""
    notes = []
    candidate, completion = sample.candidate, sample.completion
    if candidate is not None and candidate.extraction is not None and candidate.extraction.alternatives:
        notes.append(_note_alternatives(candidate.extraction))
    if completion is not None and is_truncated(completion, candidate):
        notes.append(
            Finding(check=TRUNCATED, severity="note", message=_explain_truncation(completion, sample.max_tokens))
        )
    elif completion is not None and is_only_reasoning(completion):
        notes.append(Finding(check=ONLY_REASONING, severity="note", message=REASONING_PARSER_HINT))
    return tuple(notes)


def is_truncated(completion: Completion, candidate: Candidate | None) -> bool:
    """Whether the token limit cut the answer off before a program that parses."""
    cut_off = (completion.finish_reason or "").lower() in _CUT_OFF
    return cut_off and (candidate is None or candidate.rule == "unparsable_fence")


def is_only_reasoning(completion: Completion) -> bool:
    return not (completion.text or "").strip() and bool((completion.reasoning or "").strip())


def summarise_choice(extraction: Extraction) -> str:
    programs = [one for one in extraction.alternatives if one.rule != FILE_RULE]
    count = 1 + len(programs) + extraction.more_alternatives
    joined = "".join(f", joined with {_name_lines(*lines)}" for lines in extraction.joined)
    summary = f"rule {extraction.rule}, {_name_lines(extraction.first_line, extraction.last_line)}{joined}"
    return f"{summary}; chosen from {count} programs in the answer: {extraction.reason}" if count > 1 else summary


def list_alternatives(extraction: Extraction) -> list[str]:
    lines = [
        f"{_name_alternative(one)}, {_name_lines(one.first_line, one.last_line)}: {one.reason}"
        for one in extraction.alternatives
    ]
    more = extraction.more_alternatives
    return [*lines, f"not taken: {more} more"] if more else lines


def _name_alternative(one: Alternative) -> str:
    return "left out" if one.rule == FILE_RULE else f"not taken: rule {one.rule}"


def _note_alternatives(extraction: Extraction) -> Finding:
    evidence = "\n".join(list_alternatives(extraction))
    return Finding(check=EXTRACTION, severity="note", message=summarise_choice(extraction), evidence=evidence)


def _name_lines(first: int, last: int) -> str:
    return f"lines {first} to {last}"


def _explain_truncation(completion: Completion, max_tokens: int | None) -> str:
    written = completion.usage.completion_tokens
    if max_tokens is not None:
        limit, remedy = f"the limit of {max_tokens} tokens", "raise --max-tokens"
    elif written is not None:
        limit, remedy = f"the endpoint's limit, after {written} tokens", "set --max-tokens"
    else:
        limit, remedy = "the endpoint's token limit", "set --max-tokens"
    return f"the answer was cut off at {limit}, before it held a whole program that defines ModelNew: {remedy}"
