"""Reads A2A answers of both versions, as dictionaries, the way a caller would."""

import json

import operations

INTERRUPTED = ("input-required", "auth-required")
ENDED = ("completed", "failed", "canceled", "rejected")


def state(status):
    return str(status.get("state", "")).removeprefix("TASK_STATE_").lower().replace("_", "-")


def by_agent(message):
    return message.get("role") in ("agent", "ROLE_AGENT")


def words(parts):
    """The text of each part; data is shown as JSON."""
    return [part["text"] if "text" in part else json.dumps(part["data"], sort_keys=True) for part in parts if "text" in part or "data" in part]


class Answer:
    """What a caller knows after the events it was shown. A unary answer is one event."""

    def __init__(self):
        self.task_id = self.context_id = ""
        self.status = {}
        self.artifacts = {}
        self.history = []
        self.messages = []

    def task(self, task):
        self.task_id, self.context_id = task["id"], task.get("contextId", "")
        self.status = task.get("status", {})
        self.history = task.get("history", self.history)
        if task.get("artifacts"):
            self.artifacts = {n: artifact.get("parts", []) for n, artifact in enumerate(task["artifacts"])}

    def message(self, message):
        self.context_id = message.get("contextId", self.context_id)
        self.messages.append(message)

    def status_update(self, update):
        self.task_id, self.context_id = update["taskId"], update.get("contextId", "")
        if "message" in self.status:
            self.history = [*self.history, self.status["message"]]
        self.status = update["status"]

    def artifact_update(self, update):
        self.task_id, self.context_id = update["taskId"], update.get("contextId", "")
        artifact = update["artifact"]
        parts = artifact.get("parts", [])
        if update.get("append"):
            parts = self.artifacts.get(artifact.get("artifactId"), []) + parts
        self.artifacts[artifact.get("artifactId")] = parts

    @property
    def state(self):
        return state(self.status)

    def content(self):
        """The words of the answer, part by part: of the artifacts, else of the question, the last message or the status."""
        for parts in (
            [part for parts in self.artifacts.values() for part in parts],
            self.status.get("message", {}).get("parts", []) if self.state in INTERRUPTED else [],
            [part for message in self.messages for part in message.get("parts", [])],
            next((m["parts"] for m in reversed(self.history) if by_agent(m) and m.get("taskId", self.task_id) == self.task_id), []),
            self.status.get("message", {}).get("parts", []),
        ):
            if found := words(parts):
                return found
        return []

    def without(self, before):
        """This answer without artifacts that the task had before. Some agents go on with a task, some begin another."""
        known = list(before.artifacts.values())
        self.artifacts = {name: parts for name, parts in self.artifacts.items() if parts not in known}
        return self

    def ended(self):
        """This answer, unless it is no answer to a message that asks for none back."""
        if not self.messages and self.state != "completed":
            raise operations.Failed(f"the task is {self.state or 'without a state'}: {' '.join(self.content())}")
        return self

    def outcome(self, unary):
        found = self.content()
        return operations.Outcome("".join(found), len(found) if unary else 0)


def reply_parts(question):
    """What is sent back to a question: the interrupts of Strands want their id back in a data part, the others a text."""
    for part in question.status.get("message", {}).get("parts", []):
        for interrupt in part.get("data", {}).get("interrupts", []) if isinstance(part.get("data"), dict) else []:
            return {"data": {"interruptResponse": {"interruptId": interrupt["interruptId"], "response": "red"}}}
    return {"text": "red"}
