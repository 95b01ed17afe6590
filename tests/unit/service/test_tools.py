"""The MCP server's answers with a session that evaluates nothing; with real evaluations: `test_agent_tools.py`."""

import asyncio
import importlib.util
from types import SimpleNamespace

import pytest

from harness.domain import UsageError
from harness.service.tools.problem_facts import list_suite

if importlib.util.find_spec("mcp") is None:
    pytest.skip("the tools need the extra mcp", allow_module_level=True)


class SlowSession:
    settings = SimpleNamespace(options=None)

    async def evaluate(self, source, language, about, **how):
        await asyncio.sleep(0.05)
        if source == "bad":
            raise UsageError("the source is bad")
        return "## Result", {"outcome": "correct", **how}


@pytest.mark.parametrize("tool", ["evaluate", "sanitize", "profile", "submit"])
def test_a_call_that_waits_for_its_verdict_reports_progress(tool):
    from mcp.client.client import Client

    from harness.service.tools import server

    reports = []

    async def note(progress, total, message):
        reports.append((progress, message))

    async def call(source):
        arguments = {"problem": "add", "source": source, "language": "cpp"}
        async with Client(server.make_server(SlowSession())) as client:
            assert "context" not in str((await client.list_tools()).tools)
            return await client.call_tool(tool, arguments, progress_callback=note)

    answer = asyncio.run(call("x = 1"))
    assert answer.structured_content["outcome"] == "correct"
    assert reports[0] == (0, "waiting for the verdict for 0 s")
    refused = asyncio.run(call("bad"))
    assert refused.is_error and "the source is bad" in refused.content[0].text


def test_an_unknown_suite_is_answered_with_the_nearest_name(tiny_suite):
    with pytest.raises(UsageError, match=r"no suite 'tinny'; did you mean tiny") as error:
        list_suite("tinny", tiny_suite.parent)
    assert str(tiny_suite.parent) not in str(error.value)
