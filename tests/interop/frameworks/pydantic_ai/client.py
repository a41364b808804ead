"""Calls an agent with FastA2A's `A2AClient`: `client.py URL [OPERATION…]`, those to leave out."""

import asyncio
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import answers
import httpx
import operations
# docs: imports
from fasta2a.client import A2AClient
from fasta2a.schema import Message, Part
# docs: end


# docs: client
async def ask(client, text, **where):
    """Sends a message and asks for its task until that is done."""
    message = Message(role="user", parts=[Part(text=text)], message_id=str(uuid.uuid4()), **where)
    sent = await client.send_message(message)
    task = sent["result"]["task"]
    while task["status"]["state"] in ("submitted", "working"):
        await asyncio.sleep(0.1)
        task = (await client.get_task(task["id"]))["result"]
    return task
# docs: end


def outcome(task):
    if task["status"]["state"] != "completed":
        raise operations.Failed(f"the task is {task['status']['state']}")
    found = answers.words([part for artifact in task["artifacts"] for part in artifact["parts"]])
    return operations.Outcome("".join(found), len(found))


class Client:
    name = "fasta2a 2.1.1"

    def __init__(self, url):
        self.url = url
        self.client = A2AClient(url, httpx.AsyncClient(timeout=operations.SECONDS_PER_OPERATION))

    async def card(self):
        client = A2AClient(self.url, fetch_card=True)
        return operations.Outcome("", detail=client.agent_card["supported_interfaces"][0]["url"])

    async def send(self):
        return outcome(await ask(self.client, "hello"))

    async def stream(self):
        message = Message(role="user", parts=[Part(text="hello")], message_id=str(uuid.uuid4()))
        artifacts, state = {}, ""
        async for event in self.client.stream_message(message):
            result = event["result"]
            if update := result.get("artifact_update"):
                artifact = update["artifact"]
                before = artifacts.get(artifact["artifact_id"], []) if update.get("append") else []
                artifacts[artifact["artifact_id"]] = before + answers.words(artifact["parts"])
            if task := result.get("task") or result.get("status_update"):
                state = task["status"]["state"]
        if state != "completed":
            raise operations.Failed(f"the stream ends at {state or 'no state'}")
        return operations.Outcome("".join(text for texts in artifacts.values() for text in texts))

    async def get(self):
        task = await ask(self.client, "hello")
        return outcome((await self.client.get_task(task["id"]))["result"])

    async def multi_turn(self):
        first = await ask(self.client, "one")
        return outcome(await ask(self.client, "two", context_id=first["context_id"]))


operations.main(Client)
