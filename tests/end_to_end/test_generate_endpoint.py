"""What comes of the ways in which an endpoint answers, well or badly. Every server here is real."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import pytest
from chat_server import ANSWER, ChatServer, Reply, reply_with, serve

from harness.domain import Completion, Prompt, ProviderError, SampleKey, TokenLimitName, Usage, UsageError
from harness.generate.extraction.extractor import find_code
from harness.generate.providers.base import CompletionRequest
from harness.generate.providers.openai_compatible import (
    EndpointSettings,
    open_endpoint,
    read_endpoint_settings,
    read_retry_after,
)
from harness.generate.providers.retries import EndpointRefused, RetryPolicy

REQUEST = CompletionRequest(
    key=SampleKey(run="r", problem="add", sample=0),
    prompt=Prompt(name="plain", problem="add", language="cpp", text="Make it fast."),
    model="m",
    temperature=0.5,
    max_tokens=100,
)
JSON = {"Content-Type": "application/json"}


def _reply(body: object, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers=JSON)


QUICK = RetryPolicy(max_wait_s=20.0, first_wait_s=0.01, longest_wait_s=0.05)
SHORT = RetryPolicy(max_wait_s=0.3, first_wait_s=0.01, longest_wait_s=0.05)


def _ask(
    base_url: str,
    retries: RetryPolicy = QUICK,
    timeout_s: float = 10.0,
    times: int = 1,
    token_limit_name: TokenLimitName = "auto",
) -> list[Completion]:
    async def ask() -> list[Completion]:
        settings = EndpointSettings(
            base_url=base_url,
            api_key="secret",
            concurrency=8,
            timeout_s=timeout_s,
            retries=retries,
            token_limit_name=token_limit_name,
        )
        provider = open_endpoint(settings)
        try:
            return [*await asyncio.gather(*(provider.complete(REQUEST) for _ in range(times)))]
        finally:
            await provider.close()

    return asyncio.run(ask())


def _ask_server(server: ChatServer, **options: object) -> Completion:
    with server.running():
        return _ask(server.base_url, **options)[0]  # type: ignore[arg-type]


def test_everything_that_came_back_is_kept() -> None:
    completion = _ask_server(serve(reply_with(reasoning="hm")))
    assert (completion.text, completion.reasoning, completion.finish_reason) == (ANSWER, "hm", "stop")
    assert completion.usage == Usage(prompt_tokens=11, completion_tokens=22, reasoning_tokens=7)
    assert (completion.model, completion.response_id) == ("m-0613", "chatcmpl-1")
    assert completion.latency_s is not None
    assert 0 < completion.latency_s < 10


def test_the_request_says_what_was_asked_for() -> None:
    server = serve(reply_with())
    _ask_server(server)
    assert server.requests == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Make it fast."}],
            "temperature": 0.5,
            "max_tokens": 100,
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_the_older_name_of_reasoning_is_read() -> None:
    assert _ask_server(serve(reply_with(reasoning_content="hm"))).reasoning == "hm"


def test_a_null_content_is_kept_as_no_text() -> None:
    completion = _ask_server(serve(reply_with(None, finish_reason="length", reasoning="so long")))
    assert (completion.text, completion.reasoning, completion.finish_reason) == (None, "so long", "length")


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert _ask_server(serve(reply_with(parts))).text == "ab"


@pytest.mark.parametrize("content", [None, "", "Submitting the kernel."])
def test_a_program_in_the_arguments_of_a_tool_call_is_found(content: str | None) -> None:
    program = 'NOTE = "</tool_call>\\n```"\n\n\nclass ModelNew:\n    x = 1\n'
    function = {"name": "submit", "arguments": json.dumps({"code": program})}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    completion = _ask_server(serve(reply_with(content, finish_reason="tool_calls", tool_calls=calls)))
    found = find_code(completion.text or "")
    assert (found and found.source, found and found.rule) == (program, "tool_call")
    assert (completion.text or "").startswith(content or "<tool_call>")


@pytest.mark.parametrize("calls", [None, [], "none", [None], [{"type": "function"}]])
def test_what_is_no_tool_call_leaves_the_content_as_it_is(calls: object) -> None:
    assert _ask_server(serve(reply_with("a", tool_calls=calls))).text == "a"


def test_fields_of_the_wrong_type_are_dropped_not_fatal() -> None:
    odd = {"choices": [{"message": {"content": "x", "reasoning": 5}, "finish_reason": 1}], "usage": [], "id": 7}
    completion = _ask_server(serve(Reply(body=json.dumps(odd).encode(), headers=JSON)))
    assert completion == Completion(text="x", latency_s=completion.latency_s)


BAD = {
    "a server error": Reply(status=500, body=b"oops"),
    "a bad gateway": Reply(status=502, body=b"<html>nginx</html>"),
    "too many requests": Reply(status=429, headers={"Retry-After": "0"}),
    "an empty body": Reply(headers=JSON),
    "half a body": Reply(body=reply_with().body[:90], headers=JSON),
    "a connection that breaks in the body": Reply(body=b'{"id', headers=JSON, claimed_length=500),
    "HTML": Reply(body=b"<!doctype html><title>Login</title>", headers={"Content-Type": "text/html"}),
    "an error in an answer that says 200": Reply(body=b'{"error": {"message": "overloaded"}}', headers=JSON),
    "an answer without choices": Reply(body=b'{"choices": []}', headers=JSON),
    "a list": Reply(body=b"[1]", headers=JSON),
    "half an event stream": Reply(body=b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n', headers=JSON),
    **{f"finish_reason {reason}": reply_with("```python", finish_reason=reason) for reason in ("error", "abort", "x")},
    "an error in a list": _reply([{"error": {"code": 503, "message": "busy"}}]),
    "an error beside a partial answer": _reply({"error": {"message": "x"}, "choices": [{"message": {"content": "x"}}]}),
    "an error in the choice": _reply({"choices": [{"message": {"content": "x"}, "error": {"code": 502}}]}),
    "an error in an event": Reply(body=b'data: {"choices": []}\n\ndata: {"error": {"message": "x"}}\n\n', headers=JSON),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_it_is_asked_again_after(bad: Reply) -> None:
    server = serve(bad, bad, reply_with())
    assert _ask_server(server).text == ANSWER
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("an empty body", "the response has an empty body"),
        ("half a body", "the response is not complete JSON"),
        ("HTML", "the response is HTML, not JSON: .*Login.*right --base-url"),
        ("a server error", "answered HTTP 500: 'oops'"),
        ("an error in an answer that says 200", "no message: overloaded"),
        ("a connection that breaks in the body", "cannot reach http://127"),
    ],
)
def test_what_never_improves_ends_with_what_came_back(bad: str, message: str) -> None:
    with pytest.raises(ProviderError, match=rf"0.3 s of --max-wait: .*{message}.*Run the same command again"):
        _ask_server(serve(BAD[bad]), retries=SHORT)


def test_an_answer_that_never_ends_is_given_up() -> None:
    with pytest.raises(ProviderError, match=r"did not answer within --request-timeout 0\.1 s"):
        _ask_server(serve(reply_with(delay_s=1.0)), retries=SHORT, timeout_s=0.1)


def test_retry_after_is_waited_for() -> None:
    server = serve(Reply(status=429, headers={"Retry-After": "1"}), reply_with())
    started = time.monotonic()
    _ask_server(server)
    assert time.monotonic() - started >= 1.0


def test_a_retry_after_beyond_our_patience_ends_at_once() -> None:
    server = serve(Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(ProviderError, match="retry after 3600 s"):
        _ask_server(server)
    assert len(server.requests) == 1


def test_an_endpoint_that_comes_up_late_is_waited_for() -> None:
    server = ChatServer(lambda number, request: reply_with(), listen=False)
    late = threading.Timer(0.3, server.listen)
    late.start()
    assert _ask_server(server).text == ANSWER


def test_an_endpoint_that_is_down_is_named() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{placeholder.getsockname()[1]}/v1"
        with pytest.raises(ProviderError, match="cannot reach http://127"):
            _ask(url, retries=SHORT)


def test_a_dead_endpoint_costs_its_time_once_not_once_per_request() -> None:
    server = serve(Reply(status=500))

    async def ask() -> list[int]:
        settings = EndpointSettings(base_url=server.base_url, api_key=None, retries=SHORT)
        provider = open_endpoint(settings)
        asked = []
        for _ in range(10):
            with pytest.raises(ProviderError):
                await provider.complete(REQUEST)
            asked.append(len(server.requests))
        await provider.close()
        return asked

    with server.running():
        first, *later = asyncio.run(ask())
    assert later == [first + number for number in range(1, 10)]


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "check OPENAI_API_KEY"), (403, "may not use this model"), (404, "check --model and --base-url")],
)
def test_a_refusal_is_not_asked_again_and_says_what_to_do(status: int, message: str) -> None:
    server = serve(Reply(status=status, body=b'{"error": {"message": "no"}}', headers=JSON))
    with pytest.raises(EndpointRefused, match=rf"HTTP {status}: no; .*{message}"):
        _ask_server(server)
    assert len(server.requests) == 1


def test_a_bad_request_is_not_asked_again() -> None:
    server = serve(Reply(status=400, body=b'{"error": {"message": "too long"}}', headers=JSON))
    with pytest.raises(ProviderError, match="HTTP 400: too long; the request is invalid"):
        _ask_server(server)
    assert len(server.requests) == 1


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
def test_a_permanent_error_in_a_body_fails_at_once_with_its_reason(body: object) -> None:
    server = serve(_reply(body))
    with pytest.raises(ProviderError, match=r"4096 tokens \(code 4\d\d\); the request is invalid"):
        _ask_server(server)
    assert len(server.requests) == 1


def test_a_refusal_in_a_body_says_what_to_do() -> None:
    with pytest.raises(EndpointRefused, match="check OPENAI_API_KEY"):
        _ask_server(serve(_reply({"error": {"message": "no", "code": 401}})))


@pytest.mark.parametrize("status", [200, 429])
def test_the_reason_of_the_provider_behind_a_gateway_is_named(status: int) -> None:
    raw = {"message": "Provider returned error", "code": 429, "metadata": {"raw": "the pool is full."}}
    with pytest.raises(ProviderError, match=r"Provider returned error: the pool is full( \(code 429\))?\. Run the"):
        _ask_server(serve(_reply({"error": raw}, status)), retries=SHORT)


@pytest.mark.parametrize("reason", ["stop", "STOP", "length", "tool_calls", "content_filter", "end_turn"])
def test_a_finished_answer_is_not_asked_again(reason: str) -> None:
    assert _ask_server(serve(reply_with(finish_reason=reason))).finish_reason == reason


def _stream(*chunks: object, end: str = "data: [DONE]\n\n", line_end: str = "\n") -> Reply:
    events = [": keep-alive\n\n", *(f"event: message\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks), end]
    body = "".join(events).replace("\n", line_end)
    return Reply(body=body.encode(), headers={"Content-Type": "text/event-stream"})


def _delta(finish_reason: str | None = None, **delta: object) -> dict[str, object]:
    return {"id": "r", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_event_stream_that_was_not_asked_for_is_read(line_end: str) -> None:
    chunks = [
        {"choices": [], "prompt_filter_results": []},
        _delta(role="assistant", content=None),
        _delta(reasoning_content="h"),
        _delta(reasoning_content="m"),
        *(_delta(content=character) for character in ANSWER),
        _delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 22}},
    ]
    completion = _ask_server(serve(_stream(*chunks, line_end=line_end)))
    assert (completion.text, completion.reasoning, completion.finish_reason) == (ANSWER, "hm", "stop")
    assert (completion.usage.completion_tokens, completion.model, completion.response_id) == (22, "m-1", "r")


def test_events_without_empty_lines_between_them_are_read() -> None:
    lines = [f"data:{json.dumps(chunk)}\n" for chunk in (_delta(content="a"), _delta(content="b"), _delta("stop"))]
    assert _ask_server(serve(Reply(body="".join([*lines, "data: [DONE]\n"]).encode()))).text == "ab"


def test_tool_calls_of_an_event_stream_are_joined() -> None:
    calls = [
        [{"index": 0, "id": "a", "function": {"name": "submit", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"code"'}}],
        [{"index": 0, "function": {"arguments": ': "x"}'}}],
    ]
    stream = _stream(*(_delta(tool_calls=call) for call in calls), _delta("tool_calls"), end="")
    text = _ask_server(serve(stream)).text
    assert text == '<tool_call>\n{"name": "submit", "arguments": "{\\"code\\": \\"x\\"}"}\n</tool_call>\n'


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"text": ANSWER, "finish_reason": "stop"}]},
        {"choices": [{"delta": {"content": ANSWER}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": [{"type": "thinking", "thinking": "x"}, {"text": ANSWER}]}}]},
    ],
)
def test_other_shapes_of_an_answer_are_read(body: object) -> None:
    assert _ask_server(serve(_reply(body))).text == ANSWER


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
    completion = _ask_server(serve(reply_with(**{"content": None, **message})))
    assert completion.reasoning == "hm"
    assert not completion.text


def _refuse_max_tokens(words: str) -> ChatServer:
    refusal = _reply({"error": {"message": words, "param": "max_tokens", "code": "unsupported_parameter"}}, 400)
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


def test_a_token_limit_that_is_too_large_is_sent_once() -> None:
    server = _refuse_max_tokens("max_tokens is too large: at most 50")
    with pytest.raises(ProviderError, match="at most 50"):
        _ask_server(server)
    assert len(server.requests) == 1


def test_the_name_of_the_token_limit_can_be_set() -> None:
    server = _refuse_max_tokens("no")
    assert _ask_server(server, token_limit_name="max_completion_tokens").text == ANSWER
    assert len(server.requests) == 1


def test_a_spent_quota_is_not_asked_again() -> None:
    body = b'{"error": {"message": "pay", "code": "insufficient_quota"}}'
    server = serve(Reply(status=429, body=body, headers=JSON))
    with pytest.raises(EndpointRefused, match="quota is exhausted"):
        _ask_server(server)
    assert len(server.requests) == 1


def test_a_missing_key_is_an_error_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match=r"set OPENAI_API_KEY.*--base-url"):
        read_endpoint_settings({}, base_url=None)


def test_another_endpoint_needs_no_key() -> None:
    assert read_endpoint_settings({}, base_url="http://localhost:1/v1").api_key is None


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "v1"])
def test_a_base_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        read_endpoint_settings({"OPENAI_API_KEY": "k"}, base_url=url)


def test_a_key_with_a_line_end_inside_is_an_error_that_does_not_show_it() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY holds") as caught:
        read_endpoint_settings({"OPENAI_API_KEY": "sec\nret"}, base_url=None)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:30 GMT", "date": "Tue, 01 Jan 2030 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 01 Jan 2029 00:00:30 GMT", "date": "Tue, 01 Jan 2030 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds
