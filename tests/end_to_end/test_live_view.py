"""The display of `harness run --turns` in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading

import pytest
from chat_server import ChatServer, reply_with

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def terminal():
    """A pseudo-terminal of 80 columns: its end for the program, and a function that closes it and gives the output."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    written = bytearray()

    def read() -> None:
        try:
            while data := os.read(reader, 65536):
                written.extend(data)
        except OSError:  # the program's end was closed
            return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def finish() -> str:
        os.close(writer)
        thread.join()
        os.close(reader)
        return written.decode()

    return writer, finish


def choose(number: int, request: dict) -> object:
    is_repair = "wrong_value" in request["messages"][-1]["content"]
    body = "        total = a + b\n        return total\n" if is_repair else "        return a - b\n"
    return reply_with(f"```python\n{HEAD}{body}```\n", delay_s=1.5)


@pytest.mark.slow
def test_a_terminal_shows_turns_tokens_cost_and_work_in_flight(start_harness, tiny_suite, terminal):
    writer, finish = terminal
    server = ChatServer(choose)
    with server.running():
        process = start_harness(
            ["run", "--turns", 3, "--problems-dir", tiny_suite.parent, "--suite", "tiny", "--language", "cpp",
             "--no-time", "--model", "m", "--samples", 2, "--base-url", server.base_url, "--price", "m=1/10"],
            env={"OPENAI_API_KEY": "k", "TERM": "xterm", "COLUMNS": None}, stderr=writer,
        )  # fmt: skip
        process.communicate()
    output = finish()
    assert process.returncode == 0, output
    lines = [line.rstrip() for line in _CONTROL.sub("\n", output).replace("\r", "\n").split("\n")]
    assert any(re.fullmatch(r"now 2 asking \(longest \d+ s\)", line) for line in lines), lines
    assert any("on a device" in line for line in lines)
    assert any(line.startswith("samples 2/2, turns 4, time ") for line in lines)
    assert "tokens 44 asked, 88 answered, 0.0009 USD" in lines
    assert any(re.fullmatch(r"add +2/2 +4  correct \(sample [01], turn 1\)", line) for line in lines)
    assert max(map(len, lines)) <= 80
