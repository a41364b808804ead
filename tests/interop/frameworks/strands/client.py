"""Calls an agent with Strands' `A2AAgent`: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
from strands.agent.a2a_agent import A2AAgent
# docs: end


# docs: client
async def ask(url, text):
    agent = A2AAgent(endpoint=url)
    return await agent.invoke_async(text)
# docs: end


def texts(result):
    return [block["text"] for block in result.message["content"] if "text" in block]


class Client:
    name = "strands-agents 1.62.0"

    def __init__(self, url):
        self.url = url

    async def card(self):
        card = await A2AAgent(endpoint=self.url).get_agent_card()
        return operations.Outcome("", detail=card.url)

    async def send(self):
        result = await ask(self.url, "hello")
        if result.stop_reason != "end_turn":
            raise operations.Failed(f"stopped: {result.stop_reason}")
        return operations.Outcome("".join(texts(result)))

    async def stream(self):
        events = [event async for event in A2AAgent(endpoint=self.url).stream_async("hello")]
        return operations.Outcome("".join(texts(events[-1]["result"])))

    async def ask_back(self):
        result = await ask(self.url, "ask me")
        if result.stop_reason != "interrupt":
            raise operations.Failed(f"no question: {result.stop_reason}")
        return operations.Outcome("".join(texts(result)))


operations.main(Client)
