"""A CrewAI agent served as its A2A module has it: `server.py PORT`."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
# Nothing may leave this machine.
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")
import echo
# docs: imports
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from crewai import Agent, BaseLLM
from crewai.a2a import A2AServerConfig
from crewai.a2a.utils.task import cancel, execute
# docs: end


class EchoModel(BaseLLM):
    def call(self, messages, *args, **kwargs):
        prompt = messages if isinstance(messages, str) else messages[-1]["content"]
        said = prompt.split("Current Task: ")[-1].split("\n")[0]
        if echo.is_slow(said):
            time.sleep(echo.SLOW_SECONDS)
        return f"Thought: I now can give a great answer\nFinal Answer: {echo.answer('crewai', [said])}"


def make_agent():
    config = A2AServerConfig(name="crewai_echo")
    return Agent(role="crewai_echo", goal="Echo", backstory="Echoes", llm=EchoModel(model="echo"), a2a=config)


# docs: server
class CrewExecutor(AgentExecutor):
    async def execute(self, context, event_queue):
        # An agent that is still busy with a cancelled task refuses the next one, so every task has an agent of its own.
        await execute(make_agent(), context, event_queue)

    async def cancel(self, context, event_queue):
        await cancel(context, event_queue)


def application(url):
    handler = DefaultRequestHandler(agent_executor=CrewExecutor(), task_store=InMemoryTaskStore())
    return A2AStarletteApplication(agent_card=make_agent().to_agent_card(url), http_handler=handler).build()
# docs: end


if __name__ == "__main__":
    port, _ = echo.arguments()
    echo.serve(application(f"http://localhost:{port}"), port)
