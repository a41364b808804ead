"""Calls an agent with Microsoft Agent Framework's `A2AAgent`: `client.py URL [OPERATION…]`, those to leave out."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import operations
# docs: imports
from agent_framework.a2a import A2AAgent
# docs: end


# docs: client
async def ask(url, *texts):
    """Sends one message after the other in one session, and gives the last answer."""
    async with A2AAgent(name="remote", url=url) as agent:
        session = agent.create_session()
        for text in texts:
            answer = await agent.run(text, session=session)
    return answer
# docs: end


def outcome(answer):
    found = [content.text for message in answer.messages for content in message.contents if content.type == "text"]
    return operations.Outcome("".join(found), len(found))


class Client:
    name = "agent-framework-a2a 1.0.0b261022"

    def __init__(self, url):
        # The agent posts to exactly this address.
        self.url = url if url.count("/") > 2 else f"{url}/"

    async def send(self):
        return outcome(await ask(self.url, "hello"))

    async def stream(self):
        async with A2AAgent(name="remote", url=self.url) as agent:
            texts = [update.text async for update in agent.run("hello", stream=True)]
        return operations.Outcome("".join(texts))

    async def get(self):
        """Has the task worked on in the background, and asks for it until it is done."""
        async with A2AAgent(name="remote", url=self.url) as agent:
            answer = await agent.run("slow", background=True)
            while answer.continuation_token:
                await asyncio.sleep(0.2)
                answer = await agent.poll_task(answer.continuation_token)
        return outcome(answer)

    async def multi_turn(self):
        return outcome(await ask(self.url, "one", "two"))


operations.main(Client)
