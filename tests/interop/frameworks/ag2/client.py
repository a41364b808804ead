"""Calls an agent with an AG2 `Agent` whose model is the remote one: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
from ag2 import Agent
from ag2.a2a import A2AConfig
# docs: end


# docs: client
async def ask(url, text, *more, tools=(), **options):
    """Sends one message after the other in one conversation, and gives the last answer."""
    agent = Agent("remote", config=A2AConfig(card_url=url, **options), tools=tools)
    reply = await agent.ask(text)
    for text in more:
        reply = await reply.ask(text)
    return reply.body
# docs: end


def ask_user() -> str:
    """Asks the user."""
    return "red"


class Client:
    name = "ag2 1.2.1"

    def __init__(self, url):
        self.url = url

    async def send(self):
        return operations.Outcome(await ask(self.url, "hello", streaming=False))

    async def stream(self):
        return operations.Outcome(await ask(self.url, "hello", streaming=True))

    async def multi_turn(self):
        return operations.Outcome(await ask(self.url, "one", "two"))

    async def ask_back(self):
        return operations.Outcome(await ask(self.url, "ask me", tools=[ask_user]))


operations.main(Client)
