"""Answers, errors and refusals in the shapes in which endpoints and gateways send them. Every server here is real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from chat_server import ANSWER, ChatServer, Reply, reply_with, serve
from endpoint_client import QUICK, REQUEST, SHORT, ask_server, reply

from harness.domain import ProviderError
from harness.generate.providers.endpoint_errors import EndpointRefused
from harness.generate.providers.openai_compatible import EndpointSettings, open_endpoint

CONTEXT = "the context has 4096 tokens."
RAW = {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": {"message": CONTEXT}})}}


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": CONTEXT, "code": 400}},
        {"object": "error", "message": CONTEXT, "type": "BadRequestError", "code": 400},
        {"error": CONTEXT, "code": "400"},
        {"error": {"error": {"message": CONTEXT, "type": "invalid_request_error"}}},
        [{"error": {"message": CONTEXT, "code": 422}}],
        {"status": 400, "title": "Bad request", "detail": CONTEXT},
        {"choices": [{"message": {"content": "x"}, "error": {"code": 400, "message": CONTEXT}}]},
        {"choices": [{"message": {}, "finish_reason": "error", "error": {"code": 400, "message": CONTEXT}}]},
        {"error": {"code": 400, **RAW}},
    ],
)
@pytest.mark.quick(5)
def test_a_permanent_error_in_a_body_fails_at_once_with_its_reason(body: object) -> None:
    server = serve(reply(body))
    with pytest.raises(ProviderError, match=r"4096 tokens \(code 4\d\d\); the request is invalid"):
        ask_server(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("make", [lambda words: {"error": words}, lambda words: {"error": {"message": words}}])
@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("context length exceeded: 4096", "4096; the request is invalid: check --model, --max-tokens"),
        ("prompt is too long", "too long; the request is invalid"),
        ("Model m not found", "check --model and --base-url"),
        ("Invalid API key", "check OPENAI_API_KEY"),
        ("You exceeded your current quota", "the account has no credit"),
        ("flagged by moderation", "refuses what the prompt says"),
    ],
)
def test_a_permanent_error_without_a_code_fails_at_once(make: Callable, words: str, advice: str) -> None:
    server = serve(reply(make(words)))
    with pytest.raises(ProviderError, match=advice):
        ask_server(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "words",
    ["Rate limit reached", "overloaded", "request timed out", "Please try again", "service unavailable", "timeout"],
)
def test_a_temporary_error_without_a_code_is_asked_again(words: str) -> None:
    assert ask_server(serve(reply({"error": words}), reply_with())).text == ANSWER


def test_an_html_page_fails_at_once_and_names_the_option() -> None:
    server = serve(Reply(body=b"<!doctype html><title>Login</title>", headers={"Content-Type": "text/html"}))
    with pytest.raises(EndpointRefused, match=r"not JSON: .*Login.*; the address is no such API: check --base-url"):
        ask_server(server)
    assert len(server.requests) == 1


def test_a_refusal_in_a_body_says_what_to_do() -> None:
    with pytest.raises(EndpointRefused, match="check OPENAI_API_KEY"):
        ask_server(serve(reply({"error": {"message": "no", "code": 401}})))


@pytest.mark.parametrize("status", [200, 429])
def test_the_reason_of_the_provider_behind_a_gateway_is_named(status: int) -> None:
    raw = {"message": "Provider returned error", "code": 429, "metadata": {"raw": "the pool is full."}}
    with pytest.raises(ProviderError, match=r"Provider returned error: the pool is full( \(code 429\))?\. Run the"):
        ask_server(serve(reply({"error": raw}, status)), retries=SHORT)


@pytest.mark.parametrize("reason", ["stop", "STOP", "length", "tool_calls", "content_filter", "end_turn"])
def test_a_finished_answer_is_not_asked_again(reason: str) -> None:
    assert ask_server(serve(reply_with(finish_reason=reason))).finish_reason == reason


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"text": ANSWER, "finish_reason": "stop"}]},
        {"choices": [{"delta": {"content": ANSWER}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": [{"type": "thinking", "thinking": "x"}, {"text": ANSWER}]}}]},
    ],
)
def test_other_shapes_of_an_answer_are_read(body: object) -> None:
    assert ask_server(serve(reply(body))).text == ANSWER


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot help."},
        {"content": "", "refusal": "I cannot help."},
        {"content": [{"type": "refusal", "refusal": "I cannot help."}]},
    ],
)
def test_a_refusal_without_content_is_the_answer_and_its_end(message: dict[str, object]) -> None:
    completion = ask_server(serve(reply_with(**message)))
    assert (completion.text, completion.finish_reason) == ("I cannot help.", "refusal")


def test_content_beside_a_refusal_stays() -> None:
    completion = ask_server(serve(reply_with(refusal="no")))
    assert (completion.text, completion.finish_reason) == (ANSWER, "stop")


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "hm"},
        {"thinking": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"type": "reasoning.summary", "summary": "m"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_reasoning_is_read_in_all_its_fields(message: dict[str, object]) -> None:
    completion = ask_server(serve(reply_with(**{"content": None, **message})))
    assert completion.reasoning == "hm"
    assert not completion.text


def _refuse_max_tokens(words: str) -> ChatServer:
    refusal = reply({"error": {"message": words, "param": "max_tokens", "code": "unsupported_parameter"}}, 400)
    return ChatServer(lambda number, request: refusal if "max_tokens" in request else reply_with())


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "[{'loc': ['body', 'max_tokens'], 'msg': 'Extra inputs are not permitted'}]",
        "Unsupported parameter.",
    ],
)
def test_the_name_of_the_token_limit_is_learnt_once_for_all_samples(words: str) -> None:
    server = _refuse_max_tokens(words)

    async def ask() -> None:
        provider = open_endpoint(EndpointSettings(base_url=server.base_url, api_key=None, retries=QUICK))
        await provider.complete(REQUEST)
        await asyncio.gather(*(provider.complete(REQUEST) for _ in range(5)))
        await provider.close()

    with server.running():
        asyncio.run(ask())
    assert ["max_tokens" in request for request in server.requests] == [True] + 6 * [False]
    assert sum("max_completion_tokens" in request for request in server.requests) == 6


def test_a_field_that_a_server_of_pydantic_refuses_is_learnt() -> None:
    refusal = reply({"detail": [{"loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted"}]}, 422)
    server = ChatServer(lambda number, request: refusal if "max_tokens" in request else reply_with())
    assert ask_server(server).text == ANSWER


def test_a_token_limit_that_is_too_large_is_sent_once() -> None:
    server = _refuse_max_tokens("max_tokens is too large: at most 50")
    with pytest.raises(ProviderError, match="at most 50"):
        ask_server(server)
    assert len(server.requests) == 1


def test_the_name_of_the_token_limit_can_be_set() -> None:
    server = _refuse_max_tokens("no")
    assert ask_server(server, token_limit_name="max_completion_tokens").text == ANSWER
    assert len(server.requests) == 1
