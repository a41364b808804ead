"""Drives a server with the Python SDK 0.3: `driver.py BASE_URL [without-credentials]`, every binding, no version header anywhere."""

import asyncio
import importlib.metadata
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import checks
import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    Message,
    MessageSendConfiguration,
    Part,
    GetTaskPushNotificationConfigParams,
    PushNotificationConfig,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskStatusUpdateEvent,
    TextPart,
)

PROTOCOL = "0.3"

# This SDK shows A2A errors as they come over the wire. Its own servers and those of the JS SDK differ in the last two HTTP statuses.
ERRORS = {
    "JSONRPC": {-32001: "task-not-found", -32002: "task-not-cancelable", -32003: "push-not-supported"},
    "HTTP+JSON": {404: "task-not-found", 409: "task-not-cancelable", 501: "push-not-supported"},
    "GRPC": {
        "NOT_FOUND": "task-not-found",
        "FAILED_PRECONDITION": "task-not-cancelable",
        "UNIMPLEMENTED": "push-not-supported",
    },
}


def texts(parts):
    return [part.root.text for part in parts]


def neutral_task(task):
    artifacts = [texts(artifact.parts) for artifact in task.artifacts or []]
    return checks.Task(task.id, task.context_id, task.status.state.value, artifacts, len(task.history or []))


def neutral_event(item):
    """The SDK yields a Message, or (task so far, update), with no update when the event was the task itself."""
    if isinstance(item, Message):
        return checks.Event("message", item.task_id or "", texts=tuple(texts(item.parts)))
    task, update = item
    match update:
        case None:
            return checks.Event("task", task.id, task.status.state.value)
        case TaskStatusUpdateEvent():
            return checks.Event("status", update.task_id, update.status.state.value, final=update.final)
        case TaskArtifactUpdateEvent():
            return checks.Event(
                "artifact",
                update.task_id,
                texts=tuple(texts(update.artifact.parts)),
                artifact_id=update.artifact.artifact_id,
                append=bool(update.append),
                last_chunk=bool(update.last_chunk),
            )


class Agent:
    def __init__(self, base, http, binding):
        self.base, self.http, self.binding = base, http, binding
        self.clients = {}

    async def fetch_card(self):
        return await A2ACardResolver(self.http, self.base).get_agent_card()

    async def client(self, streaming):
        if streaming not in self.clients:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_transports=[self.binding],
            )
            self.clients[streaming] = ClientFactory(config).create(await self.fetch_card())
        return self.clients[streaming]

    async def close(self):
        if self.binding == "GRPC":  # the other two would close the HTTP client they share
            for client in self.clients.values():
                await client.close()

    async def sent(self, streaming, text, context_id=None, task_id=None, wait=True):
        client = await self.client(streaming)
        message = Message(
            message_id=str(uuid.uuid4()),
            role=Role.user,
            context_id=context_id,
            task_id=task_id,
            parts=[Part(root=TextPart(text=text))],
        )
        async for item in client.send_message(message, configuration=MessageSendConfiguration(blocking=wait)):
            yield item

    async def card(self):
        card = await self.fetch_card()
        urls = {card.preferred_transport or "JSONRPC": card.url}
        urls.update({i.transport: i.url for i in card.additional_interfaces or []})
        checks.require("protocol version", card.protocol_version.startswith(PROTOCOL), card.protocol_version)
        return dict(
            name=card.name,
            skills=len(card.skills),
            streaming=card.capabilities.streaming,
            push=card.capabilities.push_notifications,
            interfaces=[url for transport, url in urls.items() if transport == self.binding],
        )

    async def send(self, text, **options):
        [item] = [item async for item in self.sent(False, text, **options)]
        return neutral_event(item) if isinstance(item, Message) else neutral_task(item[0])

    async def stream(self, text, **options):
        async for item in self.sent(True, text, **options):
            yield neutral_event(item)

    async def get(self, task_id, history_length=None):
        client = await self.client(streaming=True)
        return neutral_task(await client.get_task(TaskQueryParams(id=task_id, history_length=history_length)))

    async def cancel(self, task_id):
        client = await self.client(streaming=True)
        return neutral_task(await client.cancel_task(TaskIdParams(id=task_id)))

    async def subscribe(self, task_id):
        client = await self.client(streaming=True)
        async for item in client.resubscribe(TaskIdParams(id=task_id)):
            yield neutral_event(item)

    lists_push = False

    @property
    def resubscribe_shows_errors(self):
        """Over HTTP+JSON this SDK reads no HTTP status of a resubscription: every refusal is a content type it did not want."""
        return self.binding != "HTTP+JSON"

    async def create_push(self, task_id, url):
        client = await self.client(streaming=True)
        config = PushNotificationConfig(id="hook", url=url)
        set_ = await client.set_task_callback(TaskPushNotificationConfig(task_id=task_id, push_notification_config=config))
        return set_.push_notification_config.url

    async def get_push(self, task_id):
        client = await self.client(streaming=True)
        which = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id="hook")
        return (await client.get_task_callback(which)).push_notification_config.url

    def error_name(self, error):
        match error:
            case A2AClientJSONRPCError():
                wire = error.error.code
            case A2AClientHTTPError():
                wire = error.status_code
            case grpc.aio.AioRpcError():
                wire = error.code().name
            case _:
                wire = None
        return ERRORS[self.binding].get(wire, f"{type(error).__name__}: {error}")


async def main(base, operations, bindings):
    version = importlib.metadata.version("a2a-sdk")
    async with httpx.AsyncClient(timeout=checks.SECONDS_PER_CHECK) as http:
        for binding in bindings:
            agent = Agent(base, http, binding)
            await checks.run(agent, sdk_version=version, protocol=PROTOCOL, binding=binding, operations=operations)
            await agent.close()


asyncio.run(main(sys.argv[1], *checks.asked(sys.argv[2:])))
