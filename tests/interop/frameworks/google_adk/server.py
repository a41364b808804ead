"""A Google ADK agent served by `to_a2a`: `server.py PORT`."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
# docs: imports
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
# docs: end
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types


def ask_user(question: str) -> None:
    """Asks the user; the answer comes as the next message of the task."""


class EchoModel(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents if content.role == "user" for part in content.parts]
        said = [part.text or part.function_response.response.get("result") for part in parts if part.text or part.function_response]
        said = [text for text in said if text]
        last = llm_request.contents[-1].parts[-1]
        if echo.is_slow(said[-1]):
            await asyncio.sleep(echo.SLOW_SECONDS)
        if last.text and echo.asks(last.text):
            part = types.Part.from_function_call(name="ask_user", args={"question": echo.QUESTION})
        else:
            part = types.Part.from_text(text=echo.answer("google_adk", said))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


if __name__ == "__main__":
    port, _ = echo.arguments()
    # docs: server
    agent = LlmAgent(name="adk_echo", description="Echoes", model=EchoModel(model="echo"), tools=[LongRunningFunctionTool(ask_user)])
    app = to_a2a(agent, port=port)
    # docs: end
    echo.serve(app, port)
