"""A small W&B server on the loopback device: it records what the official client sends and answers what it asks back.

It knows runs, their files and file stream, artifacts, projects and reports, as far as publishing and reading back
need them; it is no W&B, and tests assert on what it was sent.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789" * 4
"""A key of the right length; no test may find it in anything that is stored."""


class Loopback:
    """What was sent: ``calls`` (operation, variables) in order, and the state that grew from them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, dict[str, bytes]] = defaultdict(dict)
        self.artifacts: dict[str, dict[str, Any]] = {}
        self.used: dict[str, list[str]] = defaultdict(list)
        self.views: dict[str, dict[str, Any]] = {}
        self.projects: set[tuple[str, str]] = set()
        self.broken = ""
        self.lock = threading.RLock()
        self.url = ""

    def named(self, operation: str) -> list[dict[str, Any]]:
        """The variables of every call of an operation."""
        return [variables for name, variables in self.calls if name == operation]

    def sent(self, kind: str) -> list[dict[str, Any]]:
        """The committed artifacts of a type, in the order of their creation."""
        return [a for a in self.artifacts.values() if a["artifactTypeName"] == kind and a["state"] == "COMMITTED"]

    def answer(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        found = re.search(r"(?:query|mutation)\s+(\w+)", query)
        name = found[1] if found else "?"
        with self.lock:
            self.calls.append((name, given))
            made = getattr(self, f"do_{name}", None)

            return {"data": made(given) if made else {}}

    def stream(self, run: str, body: dict[str, Any]) -> None:
        """A part of the file stream: summary lines replace, history lines are added, ``complete`` ends the run."""
        with self.lock:
            kept = self.runs[run]
            for name, part in (body.get("files") or {}).items():
                if name == "wandb-summary.json":
                    kept["summaryMetrics"] = part["content"][-1]
                elif name == "wandb-history.jsonl":
                    kept["history"] = kept["history"][:part["offset"]] + part["content"]
            if body.get("complete"):
                kept["state"] = "failed" if body.get("exitcode") else "finished"

    def do_UpsertBucket(self, v: dict[str, Any]) -> dict[str, Any]:
        new = v["name"] not in self.runs
        entity, project = v.get("entity") or "me", v.get("project") or "uncategorized"
        kept = self.runs.setdefault(v["name"], {
            "id": f"run:{v['name']}", "name": v["name"], "history": [], "summaryMetrics": "{}", "tags": [],
            "createdAt": "2026-01-01T00:00:00Z", "projectId": 7, "config": "{}", "notes": None, "displayName": None,
            "group": None, "jobType": None, "entity": entity, "project": project})
        kept["state"] = "running"
        self.projects.add((entity, project))
        for ours, theirs in (("config", "config"), ("tags", "tags"), ("notes", "notes"), ("displayName", "displayName"),
                             ("group", "groupName"), ("jobType", "jobType"), ("summaryMetrics", "summaryMetrics")):
            if v.get(theirs) is not None:
                kept[ours] = v[theirs]
        place = {"id": "project:1", "name": project, "entity": {"id": "entity:1", "name": entity}}
        return {"upsertBucket": {"bucket": {**self._run(v["name"]), "project": place}, "inserted": new}}

    def _run(self, name: str) -> dict[str, Any]:
        kept = self.runs[name]
        return {**{k: v for k, v in kept.items() if k != "history"}, "historyLineCount": len(kept["history"]),
                "sweepName": None, "systemMetrics": "{}", "commit": None, "readOnly": False, "heartbeatAt":
                "2026-01-01T00:00:00Z", "description": None, "user": {"name": "me", "username": "me"},
                "historyKeys": None, "logLineCount": 0, "eventsLineCount": 0, "wandbConfig": "{}",
                "historyTail": json.dumps(kept["history"][-1:]), "eventsTail": "[]"}

    def do_RunResumeStatus(self, v: dict[str, Any]) -> dict[str, Any]:
        there = v["name"] in self.runs
        return {"model": {"id": "project:1", "name": v["project"], "entity": {"id": "entity:1", "name": v["entity"]},
                          "bucket": self._run(v["name"]) if there else None}}

    def do_Run(self, v: dict[str, Any]) -> dict[str, Any]:
        there = v["name"] in self.runs
        return {"project": {"internalId": 7, "run": self._run(v["name"]) if there else None}}

    def do_CreateRunFiles(self, v: dict[str, Any]) -> dict[str, Any]:
        files = [{"name": f, "uploadUrl": f"{self.url}/put/{v['run']}/{f}"} for f in v["files"]]
        return {"createRunFiles": {"runID": v["run"], "uploadHeaders": [], "files": files}}

    def do_ServerFeaturesQuery(self, v: dict[str, Any]) -> dict[str, Any]:
        return {"serverInfo": {"features": []}}

    def do_Viewer(self, v: dict[str, Any]) -> dict[str, Any]:
        teams = {"edges": [{"node": {"name": "team"}}]}
        return {"viewer": {"id": "user:1", "entity": "me", "username": "me", "email": "me@example.org", "flags": "{}",
                           "teams": teams, "admin": False, "name": "me", "deletedAt": None}}

    def do_ArtifactType(self, v: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def do_GetDefaultEntity(self, v: dict[str, Any]) -> dict[str, Any]:
        return {"viewer": {"id": "user:1", "entity": "me"}}

    def do_CreateArtifact(self, v: dict[str, Any]) -> dict[str, Any]:
        given = v["input"]
        collection = given["artifactCollectionName"]
        before = [a for a in self.artifacts.values() if a["artifactCollectionName"] == collection]
        same = next((a for a in before if a["digest"] == given["digest"]), None)
        if same is None:
            name = f"artifact:{len(self.artifacts)}"
            same = self.artifacts[name] = {**given, "id": name, "state": "PENDING", "versionIndex": len(before)}
        latest = {"id": before[-1]["id"], "versionIndex": before[-1]["versionIndex"]} if before else None
        return {"createArtifact": {"artifact": {
            "id": same["id"], "state": same["state"],
            "artifactSequence": {"id": collection, "latestArtifact": latest}}}}

    def do_CreateArtifactManifest(self, v: dict[str, Any]) -> dict[str, Any]:
        place = f"{self.url}/put/{v['artifactID']}/{v['name']}"
        return {"createArtifactManifest": {"artifactManifest": {
            "id": f"manifest:{v['artifactID']}",
            "file": {"id": "file:0", "uploadUrl": place, "uploadHeaders": []}}}}

    def do_CreateArtifactFiles(self, v: dict[str, Any]) -> dict[str, Any]:
        nodes = [{"node": {"storagePath": f"{f['artifactID']}/{f['name']}", "uploadHeaders": [],
                           "uploadUrl": f"{self.url}/put/{f['artifactID']}/{f['name']}", "uploadMultipartUrls": None,
                           "name": f["name"], "artifact": {"id": f["artifactID"]}}}
                 for f in v["input"]["artifactFiles"]]
        return {"createArtifactFiles": {"files": {"edges": nodes}}}

    def do_CommitArtifact(self, v: dict[str, Any]) -> dict[str, Any]:
        kept = self.artifacts[v["artifactID"]]
        kept["state"] = "COMMITTED"
        return {"commitArtifact": {"artifact": {"id": kept["id"], "digest": kept["digest"]}}}

    def do_UseArtifact(self, v: dict[str, Any]) -> dict[str, Any]:
        given = v["input"]
        self.used[given["runName"]].append(given["artifactID"])
        return {"useArtifact": {"artifact": {"id": given["artifactID"]}}}

    def do_ArtifactByID(self, v: dict[str, Any]) -> dict[str, Any]:
        kept = self.artifacts[v["id"]]
        project = {"id": "project:1", "internalId": "7", "name": kept["projectName"],
                   "entity": {"name": kept["entityName"]}}
        sequence = {"__typename": "ArtifactSequence", "id": "c", "name": kept["artifactCollectionName"],
                    "project": project}
        return {"artifact": {
            "id": kept["id"], "artifactType": {"name": kept["artifactTypeName"]}, "state": kept["state"],
            "artifactSequence": sequence, "versionIndex": kept["versionIndex"], "digest": kept["digest"],
            "description": kept.get("description"), "metadata": kept.get("metadata"), "size": 1, "fileCount": 1,
            "commitHash": "c", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": None, "aliases": [], "tags": [],
            "ttlDurationSeconds": -2, "ttlIsInherited": False, "historyStep": None, "type": kept["artifactTypeName"]}}

    def do_GetProjects(self, v: dict[str, Any]) -> dict[str, Any]:
        nodes = [{"cursor": name, "node": {"id": name, "name": name, "entityName": entity, "isBenchmark": False,
                                           "user": None, "createdAt": "2026-01-01T00:00:00Z", "internalId": "7"}}
                 for entity, name in sorted(self.projects) if entity == v.get("entity")]
        return {"models": {"edges": nodes, "pageInfo": {"endCursor": None, "hasNextPage": False}}}

    def do_ProjectInternalId(self, v: dict[str, Any]) -> dict[str, Any]:
        there = (v["entityName"], v["projectName"]) in self.projects
        return {"project": {"id": "project:1", "internalId": "7"} if there else None}

    def do_upsertView(self, v: dict[str, Any]) -> dict[str, Any]:
        name = v.get("id") or f"Vmlldzo{len(self.views)}"
        new = name not in self.views
        self.views[name] = v
        return {"upsertView": {"inserted": new, "view": {
            "id": name, "type": v["type"], "name": v["name"], "displayName": v["displayName"],
            "description": v["description"], "spec": v["spec"], "updatedAt": "2026-01-01T00:00:00Z",
            "project": {"id": "7", "name": v["projectName"], "entityName": v["entityName"]}}}}

    def do_SpecificReport(self, v: dict[str, Any]) -> dict[str, Any]:
        kept = self.views[v["reportId"]]
        return {"view": {"id": v["reportId"], "name": kept["name"], "displayName": kept["displayName"],
                         "description": kept["description"], "spec": kept["spec"],
                         "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
                         "project": {"id": "7", "name": kept["projectName"], "entityName": kept["entityName"]}}}


def _handler(state: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            return

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:  # a client may leave; that is its right
                self.close_connection = True

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                body = b"".join(parts)
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

        def _reply(self, status: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _any(self) -> None:
            body, path = self._body(), self.path.partition("?")[0]
            parts = path.strip("/").split("/")
            if state.broken and state.broken in path + body.decode("utf-8", "replace"):
                self._reply(400, {"errors": [{"message": "refused by the test"}]})
            elif path == "/graphql":
                asked = json.loads(body)
                self._reply(200, state.answer(asked["query"], asked.get("variables") or {}))
            elif path.endswith("/file_stream"):
                state.stream(parts[3], json.loads(body))
                self._reply(200, {})
            else:
                if parts[0] == "put":
                    with state.lock:
                        state.files[parts[1]]["/".join(parts[2:])] = body
                self._reply(200, {})

        do_GET = do_POST = do_PUT = do_PATCH = _any

    return Handler


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve on a free port of the loopback device until the block ends."""
    state = Loopback()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
