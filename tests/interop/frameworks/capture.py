"""Writes what an agent answers, byte for byte, as fixtures: `capture.py URL FORM FOLDER`, FORM one of 1.0, 0.3, 0.3-rest.

One file per exchange: the status line, the content type, an empty line, the body without its transfer encoding. It needs no package.
"""

import http.client
import json
import pathlib
import sys
import threading
import urllib.parse

# How long an answer may take; the slow one of the echo model takes three.
SECONDS = 10

METHODS = {
    "1.0": dict(send="SendMessage", stream="SendStreamingMessage", get="GetTask", cancel="CancelTask"),
    "0.3": dict(send="message/send", stream="message/stream", get="tasks/get", cancel="tasks/cancel"),
}
REST = dict(send="/v1/message:send", stream="/v1/message:stream", get="/v1/tasks/{}", cancel="/v1/tasks/{}:cancel")


class Capture:
    def __init__(self, url, form, folder):
        self.url, self.form, self.folder = urllib.parse.urlsplit(url), form, pathlib.Path(folder)
        self.sent = 0

    def message(self, text):
        self.sent += 1
        identifier = f"message-{self.sent}"
        if self.form == "0.3":
            part = {"kind": "text", "text": text}
            return {"message": {"kind": "message", "messageId": identifier, "role": "user", "parts": [part]}}
        if self.form == "0.3-rest":
            return {"message": {"messageId": identifier, "role": "ROLE_USER", "content": [{"text": text}]}}
        return {"message": {"messageId": identifier, "role": "ROLE_USER", "parts": [{"text": text}]}}

    def ask(self, operation, payload):
        """Sends one request. The answer's head is there when this returns, its body is not read yet."""
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=SECONDS)
        headers = {"Accept": "text/event-stream" if operation == "stream" else "application/json", "Content-Type": "application/json"}
        if self.form == "1.0":
            headers["A2A-Version"] = "1.0"
        if operation == "card":
            connection.request("GET", f"{self.url.path.rstrip('/')}/.well-known/agent-card.json", headers=headers)
        elif self.form == "0.3-rest":
            path = REST[operation].format(payload.get("id"))
            body = None if operation == "get" else json.dumps({} if operation == "cancel" else payload)
            connection.request("GET" if operation == "get" else "POST", path, body, headers)
        else:
            call = {"jsonrpc": "2.0", "id": 1, "method": METHODS[self.form][operation], "params": payload}
            connection.request("POST", self.url.path or "/", json.dumps(call), headers)
        return connection.getresponse()

    def write(self, name, response, body):
        head = f"HTTP/1.1 {response.status} {response.reason}\r\nContent-Type: {response.getheader('Content-Type')}\r\n\r\n"
        (self.folder / f"{name}.http").write_bytes(head.encode() + body)
        print(f"{self.folder / name}.http: {response.status}, {len(body)} bytes")

    def exchange(self, name, operation, payload):
        response = self.ask(operation, payload)
        body = response.read()
        self.write(name, response, body)
        return body

    def run(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.exchange("card", "card", {})
        sent = self.exchange("send", "send", self.message("hello"))
        self.exchange("ask", "send", self.message("ask me"))
        self.exchange("stream", "stream", self.message("hello"))
        self.exchange("get", "get", {"id": task_id(json.loads(sent))})
        # A stream names its task in its first event, and is read on while the task is cancelled.
        stream = self.ask("stream", self.message("slow"))
        lines = []
        while not lines or lines[-1].strip():
            lines.append(stream.readline())
        event = b"".join(line.removeprefix(b"data:") for line in lines if line.startswith(b"data:"))
        rest = []
        reading = threading.Thread(target=read_rest, args=(stream, rest), daemon=True)
        reading.start()
        try:
            self.exchange("cancel", "cancel", {"id": task_id(json.loads(event))})
        except TimeoutError:
            # BeeAI's agents do this, and answer nothing but "Action has been aborted" from then on.
            print("a cancel is never answered")
        reading.join(SECONDS)
        if rest:
            self.write("cancelled-stream", stream, b"".join(lines + rest))


def read_rest(stream, rest):
    try:
        rest.append(stream.read())
    except TimeoutError:
        print("the stream of a cancelled task does not end")


def task_id(answer):
    result = answer.get("result", answer)
    [inner] = result.values() if len(result) == 1 else [result]
    return inner.get("taskId") or inner.get("id")


Capture(*sys.argv[1:]).run()
