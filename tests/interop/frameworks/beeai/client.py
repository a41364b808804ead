"""Calls an agent with BeeAI's `A2AAgent`: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory
# docs: end


# docs: client
async def ask(url, *texts, **options):
    """Sends one message after the other in one context, and gives the last answer."""
    agent = A2AAgent(url=url, memory=UnconstrainedMemory())
    for text in texts:
        answer = await agent.run(text, **options)
    return answer.last_message.text
# docs: end


class Client:
    name = "beeai-framework 0.1.85"

    def __init__(self, url):
        self.url = url

    async def card(self):
        await A2AAgent(url=self.url, memory=UnconstrainedMemory()).check_agent_exists()
        return operations.Outcome("")

    async def send(self):
        return operations.Outcome(await ask(self.url, "hello", streaming=False))

    async def stream(self):
        return operations.Outcome(await ask(self.url, "hello", streaming=True))

    async def multi_turn(self):
        return operations.Outcome(await ask(self.url, "one", "two", streaming=False))


operations.main(Client)
