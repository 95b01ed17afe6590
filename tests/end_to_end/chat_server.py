"""A real HTTP server that answers like a chat completion endpoint, well or badly, as a test tells it to."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROGRAM = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
ANSWER = f"Here it is:\n```python\n{PROGRAM}```\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`claimed_length` above the body's makes the connection break in the middle of the answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    claimed_length: int | None = None


def reply_with(
    content: object = ANSWER, *, finish_reason: str = "stop", delay_s: float = 0.0, **message: object
) -> Reply:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-0613",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": 22,
            "total_tokens": 33,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    }
    return Reply(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"}, delay_s=delay_s)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that was killed is what some tests want
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class ChatServer:
    """`choose` gets the number of the request (from 1) and its body, and says what to answer."""

    def __init__(self, choose: Callable[[int, dict[str, Any]], Reply], *, listen: bool = True) -> None:
        self.choose = choose
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._make_handler(), bind_and_activate=False)
        self._server.server_bind()
        self.listen = self._server.server_activate  # until then connections are refused
        if listen:
            self.listen()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def count_by_prompt(self) -> Counter[str]:
        return Counter(request["messages"][0]["content"] for request in self.requests)

    def accept(self, request: dict[str, Any], headers: dict[str, str]) -> int:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            return len(self.requests)

    def _make_handler(outer) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = outer.choose(
                    outer.accept(request, {name.lower(): value for name, value in self.headers.items()}), request
                )
                time.sleep(reply.delay_s)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                length = len(reply.body) if reply.claimed_length is None else reply.claimed_length
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(reply.body)
                self.close_connection = reply.claimed_length is not None

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    @contextmanager
    def running(self) -> Iterator[ChatServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def serve(*replies: Reply) -> ChatServer:
    """A server that gives these replies one after the other, and the last one from then on."""
    return ChatServer(lambda number, request: replies[min(number, len(replies)) - 1])
