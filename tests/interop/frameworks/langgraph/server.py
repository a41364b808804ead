"""The in-memory server of `langgraph dev` with the graph beside this file: `server.py PORT`."""

import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))
import echo

# Set before the import, which reads them. Nothing may leave this machine.
os.environ.update(LANGGRAPH_NO_VERSION_CHECK="1", LANGSMITH_TRACING="false", LANGGRAPH_CLI_NO_ANALYTICS="1")
from langgraph_api.cli import run_server


def announce(port, stdout):
    """The agent's address holds the id of the assistant that the server made for the graph."""
    search = urllib.request.Request(
        f"http://127.0.0.1:{port}/assistants/search", data=b"{}", headers={"Content-Type": "application/json"}
    )
    while True:
        try:
            with urllib.request.urlopen(search, timeout=5) as answer:
                [assistant] = json.load(answer)
        except (OSError, ValueError):
            time.sleep(0.1)
            continue
        os.write(stdout, f"http://127.0.0.1:{port}/a2a/{assistant['assistant_id']}\n".encode())
        return


if __name__ == "__main__":
    port, _ = echo.arguments()
    # The server writes a folder of state into the one it is started in.
    os.chdir(tempfile.mkdtemp())
    # The server logs to stdout, where only the address belongs.
    stdout = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=announce, args=(port, stdout), daemon=True).start()
    run_server(port=port, graphs={"echo": f"{HERE}/graph.py:graph"}, n_jobs_per_worker=4, disable_persistence=True)
