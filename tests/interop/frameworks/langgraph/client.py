"""Calls an agent as the guide shows it for LangGraph, which has no A2A client: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
import uuid

from a2a.client import ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest
# docs: end


# docs: client
async def ask(url, text, context_id=""):
    """Sends a message and returns its task."""
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, context_id=context_id, parts=[Part(text=text)])
    async with await create_client(url, ClientConfig(streaming=False)) as client:
        [response] = [response async for response in client.send_message(SendMessageRequest(message=message))]
    return response.task
# docs: end


def outcome(task):
    texts = [part.text for artifact in task.artifacts for part in artifact.parts]
    return operations.Outcome("".join(texts), len(texts))


class Client:
    name = "a2a-sdk 1.3.0, as in the guide"

    def __init__(self, url):
        self.url = url

    async def send(self):
        return outcome(await ask(self.url, "hello"))

    async def multi_turn(self):
        first = await ask(self.url, "one")
        return outcome(await ask(self.url, "two", context_id=first.context_id))


operations.main(Client)
