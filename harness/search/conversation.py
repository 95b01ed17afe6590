"""Makes the messages of a turn: earlier programs and their feedback, without reasoning, bounded in tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.domain import Message, Prompt
from harness.search.feedback import Feedback, make_feedback, make_fence
from harness.search.history import History, Turn
from harness.search.strategy import Ask

CONTEXT_TOKENS = 32_000
CHARACTERS_PER_TOKEN = 4  # estimate
_NO_PROGRAM = "(The answer held no program.)"

Render = Callable[[Feedback], str]


def make_prompt(
    first: Prompt, history: History, asked: Ask, render: Render, *, context_tokens: int = CONTEXT_TOKENS
) -> Prompt:
    """Continue from the turn `asked.parent`. The oldest turns that do not fit become one line each."""
    if asked.parent is None:
        return first
    path = history.trace(asked.parent)
    partner = None if asked.partner is None else history.find(asked.partner)
    room = context_tokens - count_tokens(first.text) - count_tokens(partner.source or "" if partner else "")
    shown = _choose_shown(path, render, room)
    numbers = {turn.number for turn in shown} | {asked.partner}
    hidden = [turn for turn in history.turns if turn.number not in numbers]
    last = render(make_feedback(shown[-1], history, hidden, partner))
    earlier = [Message(role="user", text=first.text)]
    for turn in shown[:-1]:
        earlier += [_show_program(turn), Message(role="user", text=render(make_feedback(turn)))]
    return replace(first, text=last, earlier=(*earlier, _show_program(shown[-1])))


def count_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _choose_shown(path: Sequence[Turn], render: Render, tokens: int) -> list[Turn]:
    shown: list[Turn] = []
    for turn in reversed(path):
        tokens -= count_tokens(_show_program(turn).text) + count_tokens(render(make_feedback(turn)))
        if shown and tokens < 0:
            break
        shown.append(turn)
    return shown[::-1]


def _show_program(turn: Turn) -> Message:
    if turn.source is None:
        return Message(role="assistant", text=_NO_PROGRAM)
    fence = make_fence(turn.source)
    return Message(role="assistant", text=f"{fence}python\n{turn.source.rstrip()}\n{fence}\n")
