"""Calls an agent with CrewAI's A2A client: `client.py URL [OPERATION…]`, those to leave out."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
# Nothing may leave this machine.
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")
import operations
from crewai.a2a.updates import PollingConfig, StreamingConfig
from crewai.a2a.utils.agent_card import afetch_agent_card
# docs: imports
from crewai.a2a.utils.delegation import aexecute_a2a_delegation
# docs: end


# docs: client
async def ask(url, text, updates, **where):
    """What a CrewAI agent with `a2a=A2AClientConfig(endpoint=url, updates=updates)` calls when it delegates."""
    return await aexecute_a2a_delegation(
        endpoint=f"{url}/.well-known/agent-card.json", auth=None, timeout=20, task_description=text, updates=updates, **where
    )
# docs: end


def outcome(answer):
    if answer.get("error"):
        raise operations.Failed(answer["error"])
    return operations.Outcome(answer["result"])


class Client:
    name = "crewai 1.15.30"

    def __init__(self, url):
        self.url = url

    async def card(self):
        card = await afetch_agent_card(f"{self.url}/.well-known/agent-card.json")
        return operations.Outcome("", detail=card.url)

    async def send(self):
        return outcome(await ask(self.url, "hello", PollingConfig(interval=0.2)))

    async def stream(self):
        return outcome(await ask(self.url, "hello", StreamingConfig()))

    async def multi_turn(self):
        first = await ask(self.url, "one", StreamingConfig())
        return outcome(await ask(self.url, "two", StreamingConfig(), context_id=first["history"][-1].context_id))


operations.main(Client)
