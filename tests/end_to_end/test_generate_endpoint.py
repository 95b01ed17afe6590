"""What comes of the ways in which an endpoint answers, well or badly. Every server here is real."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import pytest
from chat_server import ANSWER, ChatServer, Reply, reply_with, serve
from endpoint_client import JSON, REQUEST, SHORT, ask, ask_server, reply

from harness.domain import Completion, ProviderError, Usage, UsageError
from harness.generate.extraction.extractor import find_code
from harness.generate.providers.endpoint_errors import EndpointRefused
from harness.generate.providers.openai_compatible import (
    EndpointSettings,
    open_endpoint,
    read_key,
    read_retry_after,
)


def test_everything_that_came_back_is_kept() -> None:
    completion = ask_server(serve(reply_with(reasoning="hm")))
    assert (completion.text, completion.reasoning, completion.finish_reason) == (ANSWER, "hm", "stop")
    assert completion.usage == Usage(prompt_tokens=11, completion_tokens=22, reasoning_tokens=7)
    assert (completion.model, completion.response_id) == ("m-0613", "chatcmpl-1")
    assert completion.latency_s is not None
    assert 0 < completion.latency_s < 10


def test_the_request_says_what_was_asked_for() -> None:
    server = serve(reply_with())
    ask_server(server)
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
    assert ask_server(serve(reply_with(reasoning_content="hm"))).reasoning == "hm"


def test_a_null_content_is_kept_as_no_text() -> None:
    completion = ask_server(serve(reply_with(None, finish_reason="length", reasoning="so long")))
    assert (completion.text, completion.reasoning, completion.finish_reason) == (None, "so long", "length")


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert ask_server(serve(reply_with(parts))).text == "ab"


@pytest.mark.parametrize("content", [None, "", "Submitting the kernel."])
def test_a_program_in_the_arguments_of_a_tool_call_is_found(content: str | None) -> None:
    program = 'NOTE = "</tool_call>\\n```"\n\n\nclass ModelNew:\n    x = 1\n'
    function = {"name": "submit", "arguments": json.dumps({"code": program})}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    completion = ask_server(serve(reply_with(content, finish_reason="tool_calls", tool_calls=calls)))
    found = find_code(completion.text or "")
    assert (found and found.source, found and found.extraction.rule) == (program, "tool_call")
    assert (completion.text or "").startswith(content or "<tool_call>")


@pytest.mark.parametrize("calls", [None, [], "none", [None], [{"type": "function"}]])
def test_malformed_tool_call_leaves_the_content_unchanged(calls: object) -> None:
    assert ask_server(serve(reply_with("a", tool_calls=calls))).text == "a"


def test_fields_of_the_wrong_type_are_dropped_not_fatal() -> None:
    odd = {"choices": [{"message": {"content": "x", "reasoning": 5}, "finish_reason": 1}], "usage": [], "id": 7}
    completion = ask_server(serve(Reply(body=json.dumps(odd).encode(), headers=JSON)))
    assert completion == Completion(text="x", finish_reason="", latency_s=completion.latency_s)


BAD = {
    "a server error": Reply(status=500, body=b"oops"),
    "a bad gateway": Reply(status=502, body=b"<html>nginx</html>"),
    "too many requests": Reply(status=429, headers={"Retry-After": "0"}),
    "an empty body": Reply(headers=JSON),
    "half a body": Reply(body=reply_with().body[:90], headers=JSON),
    "a connection that breaks in the body": Reply(body=b'{"id', headers=JSON, claimed_length=500),
    "an error in an answer that says 200": Reply(body=b'{"error": {"message": "overloaded"}}', headers=JSON),
    "an answer without choices": Reply(body=b'{"choices": []}', headers=JSON),
    "a list": Reply(body=b"[1]", headers=JSON),
    "an event stream": Reply(body=b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n', headers=JSON),
    **{f"finish_reason {reason}": reply_with("```python", finish_reason=reason) for reason in ("error", "abort", "x")},
    "an error in a list": reply([{"error": {"code": 503, "message": "busy"}}]),
    "an error beside a partial answer": reply({"error": {"message": "x"}, "choices": [{"message": {"content": "x"}}]}),
    "an error in the choice": reply({"choices": [{"message": {"content": "x"}, "error": {"code": 502}}]}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.quick(8)
def test_it_is_asked_again_after(bad: Reply) -> None:
    server = serve(bad, bad, reply_with())
    assert ask_server(server).text == ANSWER
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("an empty body", "the response has an empty body"),
        ("half a body", "the response is not complete JSON"),
        ("a server error", "answered HTTP 500: 'oops'"),
        ("an error in an answer that says 200", "no message: overloaded"),
        ("a connection that breaks in the body", "cannot reach http://127"),
    ],
)
def test_retries_without_improvement_return_the_last_answer(bad: str, message: str) -> None:
    with pytest.raises(ProviderError, match=rf"0.3 s of --max-wait: .*{message}.*Run the same command again"):
        ask_server(serve(BAD[bad]), retries=SHORT)


def test_an_answer_that_never_ends_is_given_up() -> None:
    with pytest.raises(ProviderError, match=r"did not answer within --request-timeout 0\.1 s"):
        ask_server(serve(reply_with(delay_s=1.0)), retries=SHORT, timeout_s=0.1)


def test_retry_after_is_waited_for() -> None:
    server = serve(Reply(status=429, headers={"Retry-After": "1"}), reply_with())
    started = time.monotonic()
    ask_server(server)
    assert time.monotonic() - started >= 1.0


def test_a_retry_after_beyond_our_patience_ends_at_once() -> None:
    server = serve(Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(ProviderError, match="retry after 3600 s"):
        ask_server(server)
    assert len(server.requests) == 1


def test_an_endpoint_that_comes_up_late_is_waited_for() -> None:
    server = ChatServer(lambda number, request: reply_with(), listen=False)
    late = threading.Timer(0.3, server.listen)
    late.start()
    assert ask_server(server).text == ANSWER


def test_an_endpoint_that_is_down_is_named() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{placeholder.getsockname()[1]}/v1"
        with pytest.raises(ProviderError, match="cannot reach http://127"):
            ask(url, retries=SHORT)


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
        ask_server(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, {"message": "Your input was flagged", "code": 403, "metadata": {"reasons": ["violence"]}}),
        (403, {"message": "no", "code": "content_policy_violation"}),
        (400, {"message": "no", "code": "content_filter"}),
        (451, {"message": "no"}),
    ],
)
def test_a_refusal_by_moderation_says_so_and_nothing_about_keys_or_options(status: int, error: dict) -> None:
    server = serve(Reply(status=status, body=json.dumps({"error": error}).encode(), headers=JSON))
    with pytest.raises(
        ProviderError, match=rf"HTTP {status}: {error['message']}; .*refuses what the prompt says"
    ) as said:
        ask_server(server)
    assert not isinstance(said.value, EndpointRefused)
    assert not any(word in str(said.value) for word in ("KEY", "--"))


def test_a_bad_request_is_not_asked_again() -> None:
    server = serve(Reply(status=400, body=b'{"error": {"message": "too long"}}', headers=JSON))
    with pytest.raises(ProviderError, match="HTTP 400: too long; the request is invalid"):
        ask_server(server)
    assert len(server.requests) == 1


def test_a_spent_quota_is_not_asked_again() -> None:
    body = b'{"error": {"message": "pay", "code": "insufficient_quota"}}'
    server = serve(Reply(status=429, body=body, headers=JSON))
    with pytest.raises(EndpointRefused, match="quota is exhausted"):
        ask_server(server)
    assert len(server.requests) == 1


def test_a_missing_key_is_an_error_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match=r"set OPENAI_API_KEY.*--base-url"):
        read_key({}, None)


def test_another_endpoint_needs_no_key() -> None:
    assert read_key({}, "http://localhost:1/v1") is None


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "v1"])
def test_a_base_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        read_key({"OPENAI_API_KEY": "k"}, url)


def test_api_key_with_a_newline_is_an_error_that_hides_the_key() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY holds") as caught:
        read_key({"OPENAI_API_KEY": "sec\nret"}, None)
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
