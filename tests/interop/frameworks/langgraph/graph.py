"""The graph that `langgraph dev` serves: an echo with an interrupt."""

import asyncio
import pathlib
import sys
from typing import Annotated, TypedDict

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "common"))
import echo
from langchain_core.messages import AIMessage, HumanMessage
# docs: imports
from langgraph.graph import END, START, StateGraph
# docs: end
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class State(TypedDict):
    messages: Annotated[list, add_messages]


async def reply(state: State):
    said = [message.content for message in state["messages"] if isinstance(message, HumanMessage)]
    said = [text if isinstance(text, str) else "".join(block.get("text", "") for block in text) for text in said]
    if echo.asks(said[-1]):
        said.append(str(interrupt(echo.QUESTION)))
    if echo.is_slow(said[-1]):
        await asyncio.sleep(echo.SLOW_SECONDS)
    return {"messages": [AIMessage(echo.answer("langgraph", said))]}


# docs: server
graph = StateGraph(State).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END).compile(name="langgraph_echo")
# docs: end
