"""Tries the operations of the frameworks' matrix with the Python SDK 1.x: `probe.py URL [OPERATION…]`, those to leave out."""

import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "frameworks/common"))
import answers
import httpx
import operations
import sdk
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict


class Client(sdk.Client):
    name = "a2a-sdk 1.3.0"

    def __init__(self, url):
        self.url = url
        self.http = httpx.AsyncClient(timeout=operations.SECONDS_PER_OPERATION)

    async def client(self, streaming):
        self.agent = await A2ACardResolver(self.http, self.url).get_agent_card()
        bindings = ["JSONRPC", "HTTP+JSON"]
        config = ClientConfig(streaming=streaming, httpx_client=self.http, supported_protocol_bindings=bindings)
        return ClientFactory(config).create(self.agent)

    async def fetch_card(self):
        await self.client(streaming=True)
        return self.agent.supported_interfaces[0].url

    @staticmethod
    def request(part, context_id="", task_id=""):
        message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, context_id=context_id, task_id=task_id)
        message.parts.append(ParseDict(part, pb.Part()))
        return pb.SendMessageRequest(message=message)

    async def exchange(self, answer, streaming, part, **where):
        client = await self.client(streaming)
        async for response in client.send_message(self.request(part, **where)):
            kind = response.WhichOneof("payload")
            getattr(answer, kind)(MessageToDict(getattr(response, kind)))
            yield

    async def get_task(self, task_id):
        answer = answers.Answer()
        answer.task(MessageToDict(await (await self.client(True)).get_task(pb.GetTaskRequest(id=task_id))))
        return answer

    async def cancel_task(self, task_id):
        answer = answers.Answer()
        answer.task(MessageToDict(await (await self.client(True)).cancel_task(pb.CancelTaskRequest(id=task_id))))
        return answer


operations.main(Client)
