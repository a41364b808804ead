"""The checks every Python SDK driver runs, written against a small neutral view of a client.

A driver supplies an `agent` with async methods `card`, `send`, `stream`, `get`, `list`, `cancel`, `subscribe`, `create_push`, `get_push`,
`list_push` and `delete_push` (if `lists_push` says that the SDK has them), plus `error_name` and `resubscribe_shows_errors`, and turns
what its SDK returns into `Task` and `Event`. One line of JSON is printed per check.
"""

import asyncio
import dataclasses
import json
import re
import traceback
import uuid

SECONDS_PER_CHECK = 30


@dataclasses.dataclass
class Task:
    id: str
    context_id: str
    state: str  # "completed", "input-required", ...
    artifacts: list  # one list of texts per artifact
    history: int  # how many messages


@dataclasses.dataclass
class Event:
    kind: str  # "task", "status", "artifact", "message"
    task_id: str
    state: str = ""
    texts: tuple = ()
    artifact_id: str = ""
    append: bool = False
    last_chunk: bool = False
    final: bool | None = None  # None where the SDK does not show the flag


class Failed(Exception):
    pass


def expect(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: wanted {wanted!r}, got {got!r}")


def require(what, condition, got=None):
    if not condition:
        raise Failed(f"{what}: got {got!r}")


async def collect(events):
    return [event async for event in events]


async def completed(agent, text=None, **options):
    """A finished task of our own, with the text its artifact must hold."""
    text = text or f"hello {uuid.uuid4()}"
    task = await agent.send(f"complete {text}", **options)
    expect("state", task.state, "completed")
    expect("artifacts", task.artifacts, [[text]])
    require("ids", task.id and task.context_id, task)
    return task


async def card(agent):
    found = await agent.card()
    require("name", found["name"], found)
    require("skills", found["skills"], found)
    expect("streaming", found["streaming"], True)
    require("push is claimed", found["push"], found)
    require("interfaces of this binding and version", found["interfaces"], found)


async def send(agent):
    first, second = await completed(agent), await completed(agent)
    require("two sends make two tasks", first.id != second.id, first.id)


async def message(agent):
    reply = await agent.send("message good morning")
    expect("kind", reply.kind, "message")
    expect("texts", reply.texts, ("good morning",))


async def multi_turn(agent):
    asked = await agent.send("ask which colour?")
    expect("state", asked.state, "input-required")
    done = await agent.send("complete blue", task_id=asked.id)
    expect("task", (done.id, done.context_id), (asked.id, asked.context_id))
    expect("state", done.state, "completed")
    expect("artifacts", done.artifacts, [["blue"]])


async def stream(agent):
    events = await collect(agent.stream("stream 3"))
    expect("first event", events[0].kind, "task")
    expect("task ids", {event.task_id for event in events}, {events[0].task_id})
    expect("one task event", [e.kind for e in events].count("task"), 1)
    chunks = [e for e in events if e.kind == "artifact"]
    expect("append", [c.append for c in chunks], [False, True, True])
    expect("last chunk", [c.last_chunk for c in chunks], [False, False, True])
    expect("artifact ids", len({c.artifact_id for c in chunks}), 1)
    expect("last event", (events[-1].kind, events[-1].state), ("status", "completed"))
    flags = [e.final for e in events if e.kind == "status" and e.final is not None]
    if flags:
        expect("final flags", flags, [False] * (len(flags) - 1) + [True])
    stored = await agent.get(events[0].task_id)
    streamed = [text for chunk in chunks for text in chunk.texts]
    expect("number of chunks", len(streamed), 3)
    expect("stored artifact", stored.artifacts, [streamed])


async def get(agent):
    sent = await completed(agent)
    found = await agent.get(sent.id)
    expect("task", (found.id, found.context_id, found.state, found.artifacts), (sent.id, sent.context_id, "completed", sent.artifacts))
    require("history kept", found.history >= 1, found.history)
    short = await agent.get(sent.id, history_length=1)
    expect("history of one", short.history, 1)


async def list_tasks(agent):
    context = str(uuid.uuid4())
    older = await completed(agent, context_id=context)
    newer = await completed(agent, context_id=context)
    expect("context", (older.context_id, newer.context_id), (context, context))
    tasks, token, total = await agent.list(context, page_size=1)
    expect("first page", ([t.id for t in tasks], total), ([newer.id], 2))
    require("there is a next page", token)
    expect("artifacts are left out", tasks[0].artifacts, [])
    tasks, token, _ = await agent.list(context, page_size=1, page_token=token, include_artifacts=True)
    expect("second page", [(t.id, t.artifacts) for t in tasks], [(older.id, older.artifacts)])
    expect("no page after it", token, "")


async def cancel(agent):
    running = await agent.send("sleep 60000", wait=False)
    require("still running", running.state in ("submitted", "working"), running.state)
    canceled = await agent.cancel(running.id)
    expect("answer", (canceled.id, canceled.state), (running.id, "canceled"))
    expect("stored state", (await agent.get(running.id)).state, "canceled")


async def resubscribe(agent):
    running = await agent.send("sleep 60000", wait=False)
    events = agent.subscribe(running.id)
    first = await anext(events)
    expect("first event", (first.kind, first.task_id), ("task", running.id))
    await agent.cancel(running.id)
    rest = await collect(events)
    require("events follow the snapshot", rest)
    expect("last event", (rest[-1].kind, rest[-1].state, rest[-1].task_id), ("status", "canceled", running.id))


async def resubscribe_parked(agent):
    asked = await agent.send("ask which colour?")
    events = agent.subscribe(asked.id)
    first = await anext(events)
    expect("first event", (first.kind, first.task_id, first.state), ("task", asked.id, "input-required"))
    await agent.send("complete blue", task_id=asked.id)
    rest = await collect(events)
    expect("artifacts", [e.texts for e in rest if e.kind == "artifact"], [("blue",)])
    expect("last event", (rest[-1].kind, rest[-1].state), ("status", "completed"))


async def refused(agent, call, wanted):
    try:
        answer = await call
    except Exception as error:  # whatever the SDK raises is what is under test
        expect("error", agent.error_name(error), wanted)
    else:
        raise Failed(f"wanted {wanted}, got an answer: {answer!r}")


async def task_not_found(agent):
    await refused(agent, agent.get(str(uuid.uuid4())), "task-not-found")


async def refused_stream(agent):
    await refused(agent, collect(agent.stream("complete hello", task_id=str(uuid.uuid4()))), "task-not-found")
    if agent.resubscribe_shows_errors:
        await refused(agent, collect(agent.subscribe(str(uuid.uuid4()))), "task-not-found")


async def task_not_cancelable(agent):
    done = await completed(agent)
    await refused(agent, agent.cancel(done.id), "task-not-cancelable")


async def push(agent):
    """Registers a webhook, reads it, lists it, deletes it; each answered with its URL."""
    done, url = await completed(agent), "https://example.invalid/hook"
    expect("registered", await agent.create_push(done.id, url), url)
    expect("read back", await agent.get_push(done.id), url)
    if agent.lists_push:
        expect("listed", await agent.list_push(done.id), [url])
        await agent.delete_push(done.id)
        expect("listed after it was deleted", await agent.list_push(done.id), [])
    await refused(agent, agent.create_push(str(uuid.uuid4()), url), "task-not-found")


CHECKS = {
    "card": card,
    "send": send,
    "message": message,
    "multi-turn": multi_turn,
    "stream": stream,
    "get": get,
    "list": list_tasks,
    "cancel": cancel,
    "resubscribe": resubscribe,
    "resubscribe-parked": resubscribe_parked,
    "task-not-found": task_not_found,
    "refused-stream": refused_stream,
    "task-not-cancelable": task_not_cancelable,
    "push": push,
}


async def without_credentials(agent):
    """A server that knows its callers: the client says that credentials are missing, whatever it asks for."""
    calls = [agent.send("complete hello"), collect(agent.stream("complete hello")), agent.get("x"), agent.cancel("x")]
    if agent.resubscribe_shows_errors:
        calls.append(collect(agent.subscribe("x")))
    for call in calls:
        try:
            answer = await call
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            require("missing credentials", re.search("401|credential|unauthenticated", said, re.IGNORECASE), said)
        else:
            raise Failed(f"wanted an error, got an answer: {answer!r}")


# What a server is asked that was started with callers, when the driver's second argument says so.
OF_STRANGERS = {"without-credentials": without_credentials}


async def card_at_address(agent):
    """The card of an agent's own address names that address in every interface that a client may choose."""
    found = await agent.card()
    require("interfaces of this binding and version", found["interfaces"], found)
    for url in found["interfaces"]:
        require("the address goes on in the card", f"{url}/".startswith(agent.base), found)


# What is asked at the address of an agent (`/via/SECRET`), when the driver's second argument says so.
AT_ADDRESS = {"card": card_at_address} | {name: CHECKS[name] for name in ("send", "multi-turn", "stream", "get", "cancel")}

# The bindings that have a path to put an address in.
WITH_PATH = ("JSONRPC", "HTTP+JSON")


def asked(arguments):
    """The checks and the bindings that a driver's arguments behind the address ask for."""
    match arguments:
        case ["without-credentials"]:
            return OF_STRANGERS, (*WITH_PATH, "GRPC")
        case ["at-address"]:
            return AT_ADDRESS, WITH_PATH
        case _:
            return None, (*WITH_PATH, "GRPC")


async def run(agent, *, sdk_version, protocol, binding, operations=None):
    """Runs every check that exists in this protocol version and prints its line."""
    for operation, check in (operations or CHECKS).items():
        if operation == "list" and protocol == "0.3":
            continue  # 0.3 has no list operation in any SDK
        ok, detail = True, ""
        try:
            await asyncio.wait_for(check(agent), SECONDS_PER_CHECK)
        except Failed as failure:
            ok, detail = False, str(failure)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            ok, detail = False, f"{type(error).__name__}: {error} ({where.name})"
        row = dict(sdk="python", sdk_version=sdk_version, protocol=protocol, binding=binding, operation=operation, ok=ok, detail=detail)
        print(json.dumps(row), flush=True)
