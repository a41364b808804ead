"""An agent with the Python SDK 1.x: `agent.py BINDING PROTOCOL STREAMS` serves every binding, lists that one first, and prints its URL.

With PROTOCOL 0.3 it lists the SDK's compatibility layer, which has JSON-RPC and HTTP+JSON here. STREAMS is `yes` or `no`.
"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import directives
import grpc
import uvicorn
from a2a.helpers import get_message_text, new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc
from starlette.applications import Starlette


class Work:
    """One turn of one task, in the words of `directives.obey`."""

    def __init__(self, context, queue):
        self.context, self.queue = context, queue
        self.updater = TaskUpdater(queue, context.task_id, context.context_id)
        self.artifact = f"{context.task_id}-{context.message.message_id}" if context.message else ""

    async def start(self):
        if not self.context.current_task:
            await self.queue.enqueue_event(new_task_from_user_message(self.context.message))
        await self.updater.start_work()

    async def say(self, text):
        await self.queue.enqueue_event(new_text_message(text, context_id=self.context.context_id))

    async def chunk(self, text, append, last):
        await self.updater.add_artifact([pb.Part(text=text)], artifact_id=self.artifact, append=append, last_chunk=last)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)

    async def end(self, state, text=""):
        message = self.updater.new_agent_message([pb.Part(text=text)]) if text else None
        await self.updater.update_status(pb.TaskState.Value(f"TASK_STATE_{state.upper()}"), message)


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        await directives.obey(get_message_text(context.message), Work(context, event_queue))

    async def cancel(self, context, event_queue):
        await Work(context, event_queue).end("canceled")


def card(first, protocol, streams, http_url, grpc_url):
    urls = {"JSONRPC": f"{http_url}/rpc", "HTTP+JSON": http_url}
    if protocol == "1.0":
        urls["GRPC"] = grpc_url
    order = [first, *(binding for binding in urls if binding != first)]
    return pb.AgentCard(
        name="Python 1.3 agent",
        description="Does what it is told.",
        version="1",
        supported_interfaces=[pb.AgentInterface(url=urls[b], protocol_binding=b, protocol_version=protocol) for b in order],
        capabilities=pb.AgentCapabilities(streaming=streams),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="obey", name="Obey", description="Obeys the first word.", tags=["interop"])],
    )


async def main(first, protocol, streams):
    listening, url = directives.listening()
    rpc = grpc.aio.server()
    described = card(first, protocol, streams == "yes", url, f"127.0.0.1:{rpc.add_insecure_port('127.0.0.1:0')}")
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), described)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), rpc)
    await rpc.start()
    older = protocol == "0.3"
    routes = [
        *create_agent_card_routes(described),
        *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=older),
        *create_rest_routes(handler, enable_v0_3_compat=older),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
    print(url, flush=True)
    await server.serve(sockets=[listening])


asyncio.run(main(*sys.argv[1:]))
