"""Sends notifications with the push sender of the Python SDK 1.x: registration as JSON in, what was sent as JSON out."""

import asyncio
import json
import sys

import httpx
from a2a.server.context import ServerCallContext
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
from a2a.types import a2a_pb2 as pb

NAMES = {"task_id": "task-1", "context_id": "context-1"}


def status(state):
    return pb.TaskStatus(state=pb.TaskState.Value(f"TASK_STATE_{state}"))


def events():
    yield pb.Task(id="task-1", context_id="context-1", status=status("WORKING"))
    artifact = pb.Artifact(artifact_id="artifact-1", parts=[pb.Part(text="héllo")])
    yield pb.TaskArtifactUpdateEvent(**NAMES, artifact=artifact, append=False, last_chunk=True)
    yield pb.TaskStatusUpdateEvent(**NAMES, status=status("COMPLETED"))


async def main():
    given = json.load(sys.stdin)
    store = InMemoryPushNotificationConfigStore()
    config = pb.TaskPushNotificationConfig(task_id="task-1", url=given["url"], token=given["token"])
    config.authentication.scheme, config.authentication.credentials = "Bearer", given["credentials"]
    await store.set_info("task-1", config, ServerCallContext())
    sent = 0
    async with httpx.AsyncClient() as client:
        sender = BasePushNotificationSender(client, store)
        for event in events():
            await sender.send_notification("task-1", event)
            sent += 1
    return {"sent": sent}


print(json.dumps(asyncio.run(main())))
