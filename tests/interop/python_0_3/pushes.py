"""Sends notifications with the push sender of the Python SDK 0.3: registration as JSON in, what was sent as JSON out."""

import asyncio
import json
import sys

import httpx
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore
from a2a.types import Artifact, Part, PushNotificationConfig, Task, TaskState, TaskStatus, TextPart


def tasks():
    names = {"id": "task-1", "context_id": "context-1"}
    yield Task(**names, status=TaskStatus(state=TaskState.working))
    artifact = Artifact(artifact_id="artifact-1", parts=[Part(root=TextPart(text="héllo"))])
    yield Task(**names, status=TaskStatus(state=TaskState.completed), artifacts=[artifact])


async def main():
    given = json.load(sys.stdin)
    store = InMemoryPushNotificationConfigStore()
    await store.set_info("task-1", PushNotificationConfig(url=given["url"], token=given["token"]))
    sent = 0
    async with httpx.AsyncClient() as client:
        sender = BasePushNotificationSender(client, store)
        for task in tasks():
            await sender.send_notification(task)
            sent += 1
    return {"sent": sent}


print(json.dumps(asyncio.run(main())))
