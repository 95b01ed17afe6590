"""Makes findings about an answer: alternative programs, and reasons why it contains no whole program."""

from harness.domain import (
    EMPTY_ANSWER,
    FILTERED,
    IN_REASONING,
    NO_FINISH_REASON,
    ONLY_REASONING,
    REFUSAL,
    TRUNCATED,
    Alternative,
    Candidate,
    Completion,
    Extraction,
    Finding,
    Sample,
)
from harness.domain.errors import shorten
from harness.generate.extraction.blocks import explain_removal

EXTRACTION = "extraction"
FILE_RULE = "file"  # of an alternative that is no program: a named file that the program leaves out
_CUT_OFF = ("length", "max_tokens", "model_length", "model_context_window_exceeded")
_FILTERS = ("content_filter", REFUSAL, "safety", "sensitive", "recitation", "prohibited_content", "blocklist")
_CALLS = ("tool_calls", "function_call", "tool_use")
_SHOWN_OF_REFUSAL = 200  # characters
_UP_TO_END = ("unclosed_fence", "unparsable_fence")  # rules of programs that may be cut off
_NOT_WHOLE = "before it held a whole program that defines ModelNew"
_ONLY_REASONING = (
    "the content of the answer is empty and its reasoning is not, and reasoning is not searched for programs: "
    "check the reasoning parser of the server (such as --reasoning-parser of vLLM and SGLang)"
)


def note_sample(sample: Sample) -> tuple[Finding, ...]:
    notes = []
    candidate, completion = sample.candidate, sample.completion
    if candidate is not None and candidate.extraction is not None and candidate.extraction.alternatives:
        notes.append(_note_alternatives(candidate.extraction))
    if completion is not None:
        notes += explain_incomplete(completion, candidate, sample.max_tokens)
    return tuple(notes)


def explain_incomplete(
    completion: Completion, candidate: Candidate | None, max_tokens: int | None = None
) -> list[Finding]:
    if candidate is not None and candidate.rule not in _UP_TO_END:
        return []
    end = _explain_end(completion, max_tokens)
    is_filtered_out = end is not None and end[0] == FILTERED and not (completion.text or "").strip()
    content = None if candidate or is_filtered_out else _explain_content(completion)
    return [Finding(check=check, severity="note", message=message) for check, message in filter(None, (end, content))]


def explain_reasoning(text: str) -> str:
    place = explain_removal(text)
    return place and (
        f"the text {place} counts as reasoning, which is not searched for programs; it defines ModelNew, and the rest "
        "of the answer holds no program: if the mark is none, write it in backticks or leave it out"
    )


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


def _explain_end(completion: Completion, max_tokens: int | None) -> tuple[str, str] | None:
    reason = completion.finish_reason
    if reason == "" and (completion.text or "").strip():
        return NO_FINISH_REASON, (
            f"the endpoint gave no finish_reason: the answer may have broken off, {_NOT_WHOLE}; ask for it again"
        )
    if reason and reason.lower() in _CUT_OFF:
        written = completion.usage.completion_tokens
        if max_tokens is not None:
            limit, remedy = f"the limit of {max_tokens} tokens", "raise --max-tokens"
        elif written is not None:
            limit, remedy = f"the endpoint's limit, after {written} tokens", "set --max-tokens"
        else:
            limit, remedy = "the endpoint's token limit", "set --max-tokens"
        return TRUNCATED, (f"the answer was cut off at {limit}, {_NOT_WHOLE}: {remedy}")
    if reason and reason.lower() in _FILTERS:
        return FILTERED, (
            f"the endpoint's content filter or the model's refusal ended the answer (finish_reason {reason}), "
            f"{_NOT_WHOLE}{_quote_refusal(completion)}: change the prompt, or ask another model or endpoint"
        )
    return None


def _quote_refusal(completion: Completion) -> str:
    words = " ".join((completion.text or "").split())
    if (completion.finish_reason or "").lower() != REFUSAL or not words:
        return ""
    return f", and says {shorten(words, _SHOWN_OF_REFUSAL)!r}"


def _explain_content(completion: Completion) -> tuple[str, str] | None:
    reason, text = (completion.finish_reason or "").lower(), completion.text or ""
    if text.strip():
        removal = explain_reasoning(text)
        return (IN_REASONING, removal) if removal else None
    if reason in _CALLS:
        return EMPTY_ANSWER, (
            f"the answer has neither content nor a tool call, though its finish_reason is {completion.finish_reason}: "
            "check the tool-call parser of the server (such as --tool-call-parser of vLLM and SGLang)"
        )
    if (completion.reasoning or "").strip():
        return None if reason in _CUT_OFF else (ONLY_REASONING, _ONLY_REASONING)
    said = f"its finish_reason is {reason}" if reason else "it has no finish_reason"
    return EMPTY_ANSWER, f"the answer is empty, and {said}: ask for it again, or check the model and the endpoint"
