"""Reads notifications with the types of the Python SDK 0.3, bare or in a JSON-RPC response: their bodies as JSON in, what they say as JSON out."""

import json
import sys

from a2a.types import SendStreamingMessageSuccessResponse, Task


def said(text, form):
    if form == "envelope":
        read = SendStreamingMessageSuccessResponse.model_validate_json(text).result
    else:
        read = Task.model_validate_json(text)
    task = read.id if read.kind == "task" else read.task_id
    return [read.kind, task, read.status.state.value]


given = json.load(sys.stdin)
print(json.dumps({"said": [said(body, given["form"]) for body in given["bodies"]]}))
