"""Tries the operations of the frameworks' matrix with the Python SDK 0.3: `probe.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "frameworks/common"))
import answers
import httpx
import operations
import sdk
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Client(sdk.Client):
    name = "a2a-sdk 0.3.26"

    def __init__(self, url):
        self.url = url
        self.http = httpx.AsyncClient(timeout=operations.SECONDS_PER_OPERATION)

    async def client(self, streaming):
        self.agent = await A2ACardResolver(self.http, self.url).get_agent_card()
        transports = [types.TransportProtocol.jsonrpc, types.TransportProtocol.http_json]
        config = ClientConfig(streaming=streaming, httpx_client=self.http, supported_transports=transports)
        return ClientFactory(config).create(self.agent)

    async def fetch_card(self):
        await self.client(streaming=True)
        return self.agent.url

    @staticmethod
    def message(part, context_id=None, task_id=None):
        part = types.DataPart(data=part["data"]) if "data" in part else types.TextPart(text=part["text"])
        return types.Message(
            message_id=str(uuid.uuid4()), role="user", parts=[types.Part(root=part)], context_id=context_id, task_id=task_id
        )

    async def exchange(self, answer, streaming, part, **where):
        client = await self.client(streaming)
        async for event in client.send_message(self.message(part, **where)):
            if isinstance(event, types.Message):
                answer.message(dump(event))
            else:
                # The client folds the updates into the task itself.
                answer.task(dump(event[0]))
            yield

    async def get_task(self, task_id):
        answer = answers.Answer()
        answer.task(dump(await (await self.client(True)).get_task(types.TaskQueryParams(id=task_id))))
        return answer

    async def cancel_task(self, task_id):
        answer = answers.Answer()
        answer.task(dump(await (await self.client(True)).cancel_task(types.TaskIdParams(id=task_id))))
        return answer


operations.main(Client)
