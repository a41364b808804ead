"""What the scripted model of every framework answers, and how a server says that it is ready."""

import sys

import uvicorn

# Long enough for a client to cancel, short enough for a server that answers a cancel only when the work is done.
SLOW_SECONDS = 3.0

QUESTION = "which one?"


def answer(name, texts):
    """The reply to the last of the user's texts in this context."""
    return f"{name} echo[{len(texts)}]: {texts[-1]}"


def is_slow(text):
    return text.startswith("slow")


def asks(text):
    return text.startswith("ask")


def tokens(text):
    """The text as a model streams it: word by word, each with the space that follows it."""
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


def arguments():
    """`server.py PORT [VARIANT]`"""
    return int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""


def ready(port, path=""):
    print(f"http://127.0.0.1:{port}{path}", flush=True)


def serve(app, port, path=""):
    """Runs an ASGI application and prints its address once it listens."""

    class Announcing(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            ready(port, path)

    Announcing(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).run()
