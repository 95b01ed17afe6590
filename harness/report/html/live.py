"""Serves the report's page on this machine; an open page takes new evaluations as they are stored."""

from __future__ import annotations

import html
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from harness.domain import HarnessError, UsageError
from harness.domain.files import raising
from harness.report.html.page import ReportChoice, make_page
from harness.store.results import ResultStore

HOST = "127.0.0.1"
PAUSE_PER_RENDERING = 10  # times its duration, since it takes time from evaluations
_MESSAGE = """<!doctype html><meta charset="utf-8"><title>harness</title>
<script>setTimeout(() => location.reload(), 2000)</script><p>"""


class LivePage:
    """The page of the stored evaluations, rendered once for all browsers when they change."""

    def __init__(self, results_dir: Path, choice: ReportChoice) -> None:
        self._results_dir, self._choice = results_dir, choice
        self._lock = Lock()
        self._state, self._html, self._next_s = "", b"", 0.0

    def read(self) -> tuple[str, bytes]:
        """Return the state of the results and their page. Raises HarnessError."""
        with self._lock, ResultStore.open(self._results_dir, read_only=True) as store:
            newest = [row.id for row in store.rows(sort="-id", limit=1)]
            state = f'"{store.count()}-{newest}"'
            begin_s = time.monotonic()
            if state != self._state and begin_s >= self._next_s:
                page = make_page(store, self._choice, now=datetime.now(UTC), state=state)
                self._state, self._html = state, page.html.encode("utf-8", "replace")
                self._next_s = time.monotonic() + PAUSE_PER_RENDERING * (time.monotonic() - begin_s)
            return self._state, self._html


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer

    def do_GET(self) -> None:
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in (HOST, "localhost"):
            self.send_error(403, "another host name")  # a foreign page whose name resolves to this address
        elif self.path != "/":
            self.send_error(404)
        else:
            self._send_page()

    def _send_page(self) -> None:
        try:
            state, content = self.server.page.read()
        except HarnessError as error:
            self._send(503, "", f"{_MESSAGE}{html.escape(str(error))}. This page waits.".encode())
            return
        if state == self.headers.get("If-None-Match"):
            self._send(304, state, b"")
        else:
            self._send(200, state, content)

    def _send(self, status: int, state: str, content: bytes) -> None:
        self.send_response(status)
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content)), "ETag": state}
        for name, value in (headers | {"Cache-Control": "no-store"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Print no line per request."""


class LiveServer(ThreadingHTTPServer):
    """Listens from its construction on. Raises UsageError for a port that cannot be used."""

    def __init__(self, page: LivePage, port: int) -> None:
        self.page = page
        with raising(UsageError, f"listen on port {port}", "; choose another one with --port, or 0 for any"):
            super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"
