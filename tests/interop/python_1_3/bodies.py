"""Reads notifications with the types of the Python SDK 1.x: their bodies as JSON in, what they say as JSON out."""

import json
import sys

from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format


def said(text):
    # Members that the types do not know are a fault.
    read = json_format.Parse(text, pb.StreamResponse())
    kind = read.WhichOneof("payload")
    payload = getattr(read, kind)
    task = payload.id if kind == "task" else payload.task_id
    state = pb.TaskState.Name(payload.status.state) if kind in ("task", "status_update") else None
    return [kind, task, state]


given = json.load(sys.stdin)
print(json.dumps({"said": [said(body) for body in given["bodies"]]}))
