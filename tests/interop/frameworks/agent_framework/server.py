"""A Microsoft Agent Framework agent served by `A2AExecutor`: `server.py PORT [stream]`."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
# docs: imports
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
# docs: end
from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Content, HistoryProvider, Message, ResponseStream
# docs: imports
from agent_framework.a2a import A2AExecutor
from starlette.applications import Starlette
# docs: end


class EchoClient(BaseChatClient):
    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        said = [message.text for message in messages if message.role == "user"]

        async def whole():
            if echo.is_slow(said[-1]):
                await asyncio.sleep(echo.SLOW_SECONDS)
            return ChatResponse(messages=[Message(role="assistant", contents=[echo.answer("agent_framework", said)])])

        async def tokens():
            for token in echo.tokens((await whole()).text):
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(token)])

        return ResponseStream(tokens(), finalizer=ChatResponse.from_updates) if stream else whole()


class History(HistoryProvider):
    """The executor makes a new session for every message, so the turns of a context are kept here."""

    def __init__(self):
        super().__init__("history")
        self.sessions = {}

    async def get_messages(self, session_id, **kwargs):
        return list(self.sessions.get(session_id, []))

    async def save_messages(self, session_id, messages, **kwargs):
        self.sessions.setdefault(session_id, []).extend(messages)


if __name__ == "__main__":
    port, variant = echo.arguments()
    # docs: server
    card = AgentCard(
        name="af_echo",
        description="Echoes",
        version="1.0.0",
        default_input_modes=["text"],
        default_output_modes=["text"],
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC")],
        skills=[],
    )
    agent = Agent(client=EchoClient(), name="af_echo", context_providers=[History()])
    executor = A2AExecutor(agent, stream=variant == "stream")
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
    # docs: end
    echo.serve(app, port)
