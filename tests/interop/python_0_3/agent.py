"""An agent with the Python SDK 0.3: `agent.py BINDING 0.3 yes` serves every binding, prefers that one, and prints its URL."""

import asyncio
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import directives
import grpc
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task


def part(text):
    return Part(root=TextPart(text=text))


class Work:
    """One turn of one task, in the words of `directives.obey`."""

    def __init__(self, context, queue):
        self.context, self.queue = context, queue
        self.updater = TaskUpdater(queue, context.task_id, context.context_id)
        self.artifact = str(uuid.uuid4())

    async def start(self):
        if not self.context.current_task:
            await self.queue.enqueue_event(new_task(self.context.message))
        await self.updater.start_work()

    async def say(self, text):
        await self.queue.enqueue_event(new_agent_text_message(text, context_id=self.context.context_id))

    async def chunk(self, text, append, last):
        await self.updater.add_artifact([part(text)], artifact_id=self.artifact, append=append, last_chunk=last)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)

    async def end(self, state, text=""):
        message = self.updater.new_agent_message([part(text)]) if text else None
        await self.updater.update_status(TaskState[state], message, final=True)


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        await directives.obey(context.get_user_input(), Work(context, event_queue))

    async def cancel(self, context, event_queue):
        await Work(context, event_queue).end("canceled")


def card(first, http_url, grpc_url):
    urls = {"JSONRPC": f"{http_url}/rpc", "HTTP+JSON": http_url, "GRPC": grpc_url}
    return AgentCard(
        name="Python 0.3 agent",
        description="Does what it is told.",
        version="1",
        url=urls[first],
        preferred_transport=first,
        additional_interfaces=[AgentInterface(url=url, transport=binding) for binding, url in urls.items()],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="obey", name="Obey", description="Obeys the first word.", tags=["interop"])],
    )


async def main(first, *_):
    listening, url = directives.listening()
    rpc = grpc.aio.server()
    described = card(first, url, f"127.0.0.1:{rpc.add_insecure_port('127.0.0.1:0')}")
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore())
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(described, handler), rpc)
    await rpc.start()
    app = A2ARESTFastAPIApplication(described, handler).build()
    A2AStarletteApplication(described, handler).add_routes_to_app(app, agent_card_url="/rpc/card", rpc_url="/rpc")
    print(url, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listening])


asyncio.run(main(*sys.argv[1:]))
