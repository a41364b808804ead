"""An agent with OpenTelemetry that never stops by itself: `agent.py PEER` calls PEER at the node for every task, and prints its URL.

The text of a message is the address of the node. Nothing here knows of the node's lineage: the instrumentation of Starlette and of
httpx passes on the trace, as in any instrumented program. The answer is `python(ANSWER)` with what the peer answered, or with the error.
"""

import asyncio
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import directives
import httpx
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_message_text, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.starlette import StarletteInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette

# A loop that nobody stops ends by itself.
MOST_CALLS = 12
SECONDS = 60


class Executor(AgentExecutor):
    def __init__(self, peer):
        self.peer, self.calls = peer, 0

    async def execute(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        await updater.start_work()
        answer = await self.pass_on(get_message_text(context.message))
        await updater.add_artifact([pb.Part(text=f"python({answer})")])
        await updater.complete()

    async def pass_on(self, node):
        if self.calls == MOST_CALLS:
            return "stopped by itself"
        self.calls += 1
        async with httpx.AsyncClient(timeout=SECONDS) as http:
            try:
                card = await A2ACardResolver(http, f"{node}/agents/{self.peer}").get_agent_card()
                config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=["JSONRPC"])
                message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=node)])
                answers = ClientFactory(config).create(card).send_message(pb.SendMessageRequest(message=message))
                return " ".join([get_artifact_text(artifact) async for answer in answers for artifact in answer.task.artifacts])
            except Exception as error:
                return str(error)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def main(peer):
    trace.set_tracer_provider(TracerProvider())
    HTTPXClientInstrumentor().instrument()
    listening, url = directives.listening()
    card = pb.AgentCard(
        name="Instrumented Python agent",
        description="Calls its peer for everything.",
        version="1",
        supported_interfaces=[pb.AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=pb.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="relay", name="Relay", description="Calls its peer.", tags=["interop"])],
    )
    handler = DefaultRequestHandler(Executor(peer), InMemoryTaskStore(), card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])
    StarletteInstrumentor.instrument_app(app)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(url, flush=True)
    await server.serve(sockets=[listening])


asyncio.run(main(sys.argv[1]))
