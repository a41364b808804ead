"""What the Python agents understand: the first word says what to do, the rest of the text with what."""

import socket

VERBS = {"complete", "ask", "stream", "fail", "reject", "sleep", "message"}


def read(text):
    """A text that tells nothing is completed with, as it is."""
    verb, _, rest = text.partition(" ")
    if verb not in VERBS or (verb in ("stream", "sleep") and not rest.isdigit()):
        return "complete", text
    return verb, rest


def listening():
    """A socket on a free port that callers can connect to already, and its URL."""
    opened = socket.create_server(("127.0.0.1", 0))
    return opened, f"http://127.0.0.1:{opened.getsockname()[1]}"


async def obey(text, task):
    """Does what the text says. `task` has start, say, chunk and end of one SDK; only an answer that is a message has no task."""
    verb, rest = read(text)
    if verb == "message":
        return await task.say(rest)
    await task.start()
    match verb:
        case "complete":
            await task.chunk(rest, append=False, last=True)
            await task.end("completed")
        case "stream":
            for number in range(int(rest)):
                await task.chunk(f"chunk {number}", append=number > 0, last=number + 1 == int(rest))
            await task.end("completed")
        case "sleep":
            await task.sleep(int(rest) / 1000)
            await task.end("completed")
        case "ask":
            await task.end("input_required", rest)
        case "fail":
            await task.end("failed", rest)
        case "reject":
            await task.end("rejected", rest)
