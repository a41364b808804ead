"""Calls an agent with Google ADK's `RemoteA2aAgent`: `client.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
warnings.filterwarnings("ignore")
import operations
# docs: imports
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
# docs: end


# docs: client
def remote_agent(url):
    return RemoteA2aAgent(name="remote", agent_card=f"{url}/.well-known/agent-card.json")


async def ask(runner, session, *parts):
    """The parts of all that the remote agent says to one message."""
    message = types.Content(role="user", parts=list(parts))
    said = []
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=message):
        if event.error_message:
            raise RuntimeError(event.error_message)
        said += event.content.parts if event.content else []
    return said
# docs: end


def text(parts):
    # The agent says its answer while it works and again at the end.
    return "".join(dict.fromkeys(part.text for part in parts if part.text))


class Client:
    name = "google-adk 2.13.0"

    def __init__(self, url):
        self.url = url

    async def start(self):
        runner = InMemoryRunner(agent=remote_agent(self.url), app_name="probe")
        return runner, await runner.session_service.create_session(app_name="probe", user_id="me")

    async def card(self):
        await remote_agent(self.url)._ensure_resolved()
        return operations.Outcome("")

    async def send(self):
        return operations.Outcome(text(await ask(*await self.start(), types.Part(text="hello"))))

    async def multi_turn(self):
        runner, session = await self.start()
        await ask(runner, session, types.Part(text="one"))
        return operations.Outcome(text(await ask(runner, session, types.Part(text="two"))))

    async def ask_back(self):
        runner, session = await self.start()
        parts = await ask(runner, session, types.Part(text="ask me"))
        [call] = {part.function_call.id: part.function_call for part in parts if part.function_call}.values()
        reply = types.FunctionResponse(id=call.id, name=call.name, response={"result": "red"})
        answer = await ask(runner, session, types.Part(function_response=reply))
        return operations.Outcome(f"{call.name} {call.args} -> {text(answer)}")


operations.main(Client)
