"""A BeeAI agent served by `A2AServer`: `server.py PORT VARIANT`, a `RequirementAgent` as `agent`, a bare `Runnable` as `runnable` or `rest`."""

import asyncio
import json
import pathlib
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
# docs: imports
from beeai_framework.adapters.a2a import A2AServer, A2AServerConfig
# docs: end
from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.backend import AssistantMessage, ChatModel, ChatModelOutput, MessageToolCallContent
from beeai_framework.emitter import Emitter
from beeai_framework.memory import UnconstrainedMemory
from beeai_framework.runnable import Runnable, RunnableOutput, runnable_entry
# docs: imports
from beeai_framework.serve.utils import LRUMemoryManager
# docs: end


async def words(messages):
    # A `RequirementAgent` puts words of its own before the first message.
    said = [message.text.strip().removeprefix("Your task:").strip() for message in messages if message.role == "user"]
    if echo.is_slow(said[-1]):
        await asyncio.sleep(echo.SLOW_SECONDS)
    return echo.answer("beeai", said)


class EchoModel(ChatModel):
    model_id = "echo"
    provider_id = "ollama"

    async def _create(self, input, run):
        answer = json.dumps({"response": await words(input.messages)})
        call = MessageToolCallContent(id="1", tool_name="final_answer", args=answer)
        return ChatModelOutput(output=[AssistantMessage([call])], finish_reason="tool_calls")

    async def _create_stream(self, input, run):
        yield await self._create(input, run)


class EchoRunnable(Runnable):
    """Echoes"""

    @property
    def emitter(self):
        return Emitter.root().child(namespace=["echo"])

    @runnable_entry
    async def run(self, input, /, **kwargs):
        return RunnableOutput(output=[AssistantMessage(await words(input))])


def announce(port):
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return echo.ready(port)
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    port, variant = echo.arguments()
    threading.Thread(target=announce, args=(port,), daemon=True).start()
    if variant == "agent":
        agent = RequirementAgent(llm=EchoModel(), memory=UnconstrainedMemory(), name="beeai_echo", description="Echoes")
    else:
        agent = EchoRunnable()
    protocol = "http_json" if variant == "rest" else "jsonrpc"
    # The card says what it says by default, where the server listens on every interface; this one must not.
    # docs: server
    config = A2AServerConfig(host="127.0.0.1", port=port, protocol=protocol)
    server = A2AServer(config=config, memory_manager=LRUMemoryManager(maxsize=100))
    server.register(agent, name="beeai_echo", url=f"http://0.0.0.0:{port}", send_trajectory=True)
    server.serve()
    # docs: end
