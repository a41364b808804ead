"""A Strands agent served by `A2AServer`: `server.py PORT [compliant]`."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
from strands import Agent, ToolContext, tool
from strands.models import Model
# docs: imports
from strands.multiagent.a2a import A2AServer
# docs: end


@tool(context=True)
def ask_user(tool_context: ToolContext) -> str:
    """Asks the user; the answer comes as the response to the interrupt."""
    return tool_context.interrupt("ask_user", reason=echo.QUESTION)


class EchoModel(Model):
    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        said = []
        for message in messages:
            for block in message["content"]:
                if message["role"] == "user" and "text" in block:
                    said.append(block["text"])
                for result in block.get("toolResult", {}).get("content", []):
                    said.append(result["text"])
        yield {"messageStart": {"role": "assistant"}}
        if echo.asks(said[-1]):
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "ask_user", "toolUseId": f"ask-{len(said)}"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        if echo.is_slow(said[-1]):
            await asyncio.sleep(echo.SLOW_SECONDS)
        yield {"contentBlockStart": {"start": {}}}
        for token in echo.tokens(echo.answer("strands", said)):
            yield {"contentBlockDelta": {"delta": {"text": token}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def make_agent(context_id):
    return Agent(name="strands_echo", description="Echoes", model=EchoModel(), tools=[ask_user], callback_handler=None)


if __name__ == "__main__":
    port, variant = echo.arguments()
    # docs: server
    server = A2AServer(agent_factory=make_agent, port=port, enable_a2a_compliant_streaming=variant == "compliant")
    app = server.to_starlette_app()
    # docs: end
    echo.serve(app, port)
