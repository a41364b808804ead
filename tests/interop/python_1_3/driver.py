"""Drives a server with the Python SDK 1.x: `driver.py BASE_URL`, both protocol versions, every binding."""

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
from a2a.types import a2a_pb2 as pb
from a2a.utils import errors

ERRORS = {
    errors.TaskNotFoundError: "task-not-found",
    errors.TaskNotCancelableError: "task-not-cancelable",
    errors.PushNotificationNotSupportedError: "push-not-supported",
}


def state(status):
    return pb.TaskState.Name(status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def texts(parts):
    return [part.text for part in parts]


def neutral_task(task):
    artifacts = [texts(artifact.parts) for artifact in task.artifacts]
    return checks.Task(task.id, task.context_id, state(task.status), artifacts, len(task.history))


def neutral_event(response):
    match response.WhichOneof("payload"):
        case "task":
            return checks.Event("task", response.task.id, state(response.task.status))
        case "message":
            return checks.Event("message", response.message.task_id, texts=tuple(texts(response.message.parts)))
        case "status_update":
            update = response.status_update
            return checks.Event("status", update.task_id, state(update.status))
        case "artifact_update":
            update = response.artifact_update
            return checks.Event(
                "artifact",
                update.task_id,
                texts=tuple(texts(update.artifact.parts)),
                artifact_id=update.artifact.artifact_id,
                append=update.append,
                last_chunk=update.last_chunk,
            )


class Agent:
    def __init__(self, base, http, protocol, binding):
        self.base, self.http, self.protocol, self.binding = base, http, protocol, binding
        self.clients = {}

    async def fetch_card(self, written_in="1.0"):
        """The card as the SDK asks for it, with only the interfaces of the version under test left to choose from."""
        resolver = A2ACardResolver(self.http, self.base)
        card = await resolver.get_agent_card(http_kwargs={"headers": {"A2A-Version": written_in}})
        spoken = [i for i in card.supported_interfaces if i.protocol_version.startswith(self.protocol)]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(spoken)
        return card

    async def client(self, streaming):
        if streaming not in self.clients:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[self.binding],
            )
            self.clients[streaming] = ClientFactory(config).create(await self.fetch_card())
        return self.clients[streaming]

    async def close(self):
        for client in self.clients.values():
            await client.close()

    @staticmethod
    def request(text, context_id="", task_id="", wait=True):
        message = pb.Message(
            message_id=str(uuid.uuid4()),
            role=pb.ROLE_USER,
            context_id=context_id,
            task_id=task_id,
            parts=[pb.Part(text=text)],
        )
        return pb.SendMessageRequest(message=message, configuration=pb.SendMessageConfiguration(return_immediately=not wait))

    async def card(self):
        card = await self.fetch_card(written_in=self.protocol)
        return dict(
            name=card.name,
            skills=len(card.skills),
            streaming=card.capabilities.streaming,
            push=card.capabilities.push_notifications,
            interfaces=[i.url for i in card.supported_interfaces if i.protocol_binding == self.binding],
        )

    async def send(self, text, **options):
        client = await self.client(streaming=False)
        [response] = [r async for r in client.send_message(self.request(text, **options))]
        return neutral_task(response.task) if response.HasField("task") else neutral_event(response)

    resubscribe_shows_errors = True

    async def stream(self, text, **options):
        client = await self.client(streaming=True)
        async for response in client.send_message(self.request(text, **options)):
            yield neutral_event(response)

    async def get(self, task_id, history_length=None):
        client = await self.client(streaming=True)
        return neutral_task(await client.get_task(pb.GetTaskRequest(id=task_id, history_length=history_length)))

    async def list(self, context_id, page_size, page_token="", include_artifacts=False):
        client = await self.client(streaming=True)
        page = await client.list_tasks(
            pb.ListTasksRequest(
                context_id=context_id, page_size=page_size, page_token=page_token, include_artifacts=include_artifacts
            )
        )
        checks.expect("page size used", page.page_size, page_size)
        return [neutral_task(task) for task in page.tasks], page.next_page_token, page.total_size

    async def cancel(self, task_id):
        client = await self.client(streaming=True)
        return neutral_task(await client.cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def subscribe(self, task_id):
        client = await self.client(streaming=True)
        async for response in client.subscribe(pb.SubscribeToTaskRequest(id=task_id)):
            yield neutral_event(response)

    @property
    def lists_push(self):
        return (self.protocol, self.binding) != ("0.3", "HTTP+JSON")

    async def create_push(self, task_id, url):
        client = await self.client(streaming=True)
        config = pb.TaskPushNotificationConfig(task_id=task_id, id="hook", url=url)
        return (await client.create_task_push_notification_config(config)).url

    async def get_push(self, task_id):
        client = await self.client(streaming=True)
        which = pb.GetTaskPushNotificationConfigRequest(task_id=task_id, id="hook")
        return (await client.get_task_push_notification_config(which)).url

    async def list_push(self, task_id):
        client = await self.client(streaming=True)
        page = await client.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task_id))
        return [config.url for config in page.configs]

    async def delete_push(self, task_id):
        client = await self.client(streaming=True)
        which = pb.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="hook")
        await client.delete_task_push_notification_config(which)

    @staticmethod
    def error_name(error):
        return ERRORS.get(type(error), f"{type(error).__name__}: {error}")


async def main(base, operations, bindings):
    version = importlib.metadata.version("a2a-sdk")
    async with httpx.AsyncClient(timeout=checks.SECONDS_PER_CHECK) as http:
        for protocol in ("1.0", "0.3"):
            for binding in bindings:
                agent = Agent(base, http, protocol, binding)
                await checks.run(agent, sdk_version=version, protocol=protocol, binding=binding, operations=operations)
                await agent.close()


asyncio.run(main(sys.argv[1], *checks.asked(sys.argv[2:])))
