"""Calls an agent as the guide shows it for LangGraph, which has no A2A client: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
from a2a.client import create_client
from a2a.types import Message, Part, Role, SendMessageRequest
# docs: end


# docs: client
async def ask(url, text, context_id=""):
    """Sends one message, and gives what the agent had said at the end."""
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, context_id=context_id, parts=[Part(text=text)])
    client = await create_client(url)
    async with client:
        return [response async for response in client.send_message(SendMessageRequest(message=message))]
# docs: end


def outcome(responses):
    texts = {}
    for response in responses:
        artifacts = [response.artifact_update.artifact, *response.task.artifacts]
        texts.update({artifact.artifact_id: part.text for artifact in artifacts for part in artifact.parts})
    return operations.Outcome("".join(texts.values()))


class Client:
    name = "a2a-sdk 1.3.0, as in the guide"

    def __init__(self, url):
        self.url = url

    async def stream(self):
        return outcome(await ask(self.url, "hello"))


operations.main(Client)
