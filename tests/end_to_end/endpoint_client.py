"""Asks a chat server through the provider, with short waits."""

from __future__ import annotations

import asyncio
import json

from chat_server import ChatServer, Reply

from harness.domain import Completion, Prompt, SampleKey, TokenLimitName
from harness.generate.providers import CompletionRequest
from harness.generate.providers.endpoint_errors import RetryPolicy
from harness.generate.providers.openai_compatible import EndpointSettings, open_endpoint

REQUEST = CompletionRequest(
    key=SampleKey(run="r", problem="add", sample=0),
    prompt=Prompt(name="plain", problem="add", language="cpp", text="Make it fast."),
    model="m",
    temperature=0.5,
    max_tokens=100,
)
JSON = {"Content-Type": "application/json"}


def reply(body: object, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers=JSON)


QUICK = RetryPolicy(max_wait_s=20.0, first_wait_s=0.01, longest_wait_s=0.05)
SHORT = RetryPolicy(max_wait_s=0.3, first_wait_s=0.01, longest_wait_s=0.05)


def ask(
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


def ask_server(server: ChatServer, **options: object) -> Completion:
    with server.running():
        return ask(server.base_url, **options)[0]  # type: ignore[arg-type]
