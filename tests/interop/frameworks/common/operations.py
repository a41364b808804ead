"""What every client tries against an agent, and the line of JSON it prints for each operation.

A client is an object with a `name` and one coroutine method per operation it has, named as in `OPERATIONS` with `_` for `-`. A method
returns an `Outcome`. `run` calls them in this order; `cancel` comes last because it is what servers recover from worst.
"""

import asyncio
import dataclasses
import json
import os
import re
import sys
import time
import traceback

OPERATIONS = ("card", "send", "stream", "get", "multi-turn", "ask-back", "cancel")

# Those that end with an answer of the echo model. Some clients give the reason of a failure as if it were one.
ECHOED = ("send", "stream", "get", "multi-turn")

SECONDS_PER_OPERATION = 20

# What differs between two runs of the same call.
IDENTIFIER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")


# Frameworks print to stdout too, where only rows belong.
ROWS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


class Failed(Exception):
    """The call was answered, and the answer is not one."""


@dataclasses.dataclass
class Outcome:
    content: str  # as a caller reads it
    parts: int = 0  # how many text parts a unary answer has; 0 where it does not matter
    detail: str = ""


def row(client, operation, ok, outcome, seconds):
    content = IDENTIFIER.sub("ID", " ".join(outcome.content.split()))
    line = dict(client=client, operation=operation, ok=ok, content=content, parts=outcome.parts, detail=outcome.detail)
    print(json.dumps({**line, "seconds": round(seconds, 2)}), file=ROWS, flush=True)


async def run(client, skipped):
    for operation in OPERATIONS:
        method = getattr(client, operation.replace("-", "_"), None)
        if method is None or operation in skipped:
            continue
        begun = time.monotonic()
        try:
            outcome, ok = await asyncio.wait_for(method(), SECONDS_PER_OPERATION), True
            if operation in ECHOED and "echo[" not in outcome.content:
                outcome, ok = Outcome("", detail=f"the answer is not the model's: {outcome.content or 'empty'}"), False
        except TimeoutError:
            outcome, ok = Outcome("", detail=f"no answer in {SECONDS_PER_OPERATION} s"), False
        except Exception as error:
            traceback.print_exc()
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            outcome, ok = Outcome("", detail=reason[:240]), False
        row(client.name, operation, ok, outcome, time.monotonic() - begun)


def main(make_client):
    """`client.py URL [OPERATION…]`, where the operations are those to leave out."""
    asyncio.run(run(make_client(sys.argv[1]), sys.argv[2:]))
