"""An AG2 agent served by `A2AServer`: `server.py PORT`."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
# docs: imports
from ag2 import Agent
from ag2.a2a import A2AServer
# docs: end
from ag2.config import LLMClient, ModelConfig
from ag2.events import ModelMessage, ModelRequest, ModelResponse, ToolCallEvent, ToolCallsEvent, ToolResultsEvent


class EchoClient(LLMClient):
    async def __call__(self, messages, context, **options):
        parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
        said = [part.content for part in parts]
        results = [result for message in messages if isinstance(message, ToolResultsEvent) for result in message.results]
        if echo.asks(said[-1]) and not results:
            # A tool that the caller has: AG2 calls it over A2A.
            return ModelResponse(tool_calls=ToolCallsEvent([ToolCallEvent(name="ask_user", arguments="{}")]))
        if echo.is_slow(said[-1]):
            await asyncio.sleep(echo.SLOW_SECONDS)
        if echo.asks(said[-1]):
            said.append(results[-1].result.parts[0].content)
        message = ModelMessage(echo.answer("ag2", said))
        await context.send(message)
        return ModelResponse(message)


class EchoConfig(ModelConfig):
    provider, model = "echo", "echo"

    def create(self):
        return EchoClient()

    def create_files_client(self):
        raise NotImplementedError

    def copy(self, **changes):
        return self


if __name__ == "__main__":
    port, _ = echo.arguments()
    # docs: server
    agent = Agent("ag2_echo", config=EchoConfig())
    app = A2AServer(agent).build_jsonrpc(url=f"http://127.0.0.1:{port}")
    # docs: end
    echo.serve(app, port)
