"""A Pydantic AI agent served by FastA2A: `server.py PORT`."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
# docs: imports
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
# docs: end
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel


async def words(messages):
    said = [
        part.content if isinstance(part.content, str) else "".join(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    if echo.is_slow(said[-1]):
        await asyncio.sleep(echo.SLOW_SECONDS)
    return echo.answer("pydantic_ai", said)


async def answer(messages, info):
    return ModelResponse(parts=[TextPart(await words(messages))])


async def stream(messages, info):
    for token in echo.tokens(await words(messages)):
        yield token


if __name__ == "__main__":
    port, _ = echo.arguments()
    # docs: server
    agent = Agent(FunctionModel(answer, stream_function=stream))
    app = agent_to_a2a(agent, name="pydantic_echo", url=f"http://127.0.0.1:{port}")
    # docs: end
    echo.serve(app, port)
