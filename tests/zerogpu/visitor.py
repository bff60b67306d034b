"""The page's events as a browser sends them: joined to Gradio's queue, answered over its event stream."""

from __future__ import annotations

import json
import urllib.request
import uuid
from typing import Any


class Visitor:
    """One open page. `headers` travel with each event, as a Space adds the visitor's token to them."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url, self.session = url, uuid.uuid4().hex[:12]
        self.headers = {"Content-Type": "application/json"} | {n.replace("_", "-"): v for n, v in headers.items()}
        self.config = json.load(urllib.request.urlopen(url + "/config", timeout=30))
        self.components = {c["id"]: c["props"] for c in self.config["components"]}
        self.named = {props["elem_id"]: id for id, props in self.components.items() if props.get("elem_id")}
        inputs = self.handler("run", "click")["inputs"]
        self.values = {n: self.components[id].get("value") for n, id in zip(self.names(), inputs, strict=True)}

    def handler(self, element: str, event: str) -> dict[str, Any]:
        """What listens to an element's event."""
        target = [self.named[element], event]
        return next(d for d in self.config["dependencies"] if target in [list(t) for t in d["targets"]])

    def settings(self, **changes: Any) -> list[Any]:
        """Values of the page's settings in order, some of them changed; the names are the API's."""
        assert set(changes) <= set(self.values)
        return list((self.values | changes).values())

    def choose(self, model: str, sentence: str) -> list[Any]:
        """Another model: its layers, heads and options become the page's."""
        painted = "model=textbook" if model != "textbook" else "model=untrained"  # what is on screen is of another one
        answer = self.send("model", "blur", [painted, *self.settings(model=model, sentence=sentence)])
        self.values = {n: update["value"] for n, update in zip(self.names(), answer[1:], strict=True)}
        return answer

    @staticmethod
    def names() -> list[str]:
        from attention.page import ARGUMENTS

        return ARGUMENTS

    def send(self, element: str, event: str, data: list[Any], event_data: Any = None) -> list[Any] | dict[str, Any]:
        """The event's outputs, or {"error": message}."""
        return self.call(self.handler(element, event)["id"], data, event_data)

    def call(self, fn_index: int, data: list[Any], event_data: Any = None) -> list[Any] | dict[str, Any]:
        body = {"data": data, "fn_index": fn_index, "session_hash": self.session, "event_data": event_data}
        join = urllib.request.Request(f"{self.url}/gradio_api/queue/join", json.dumps(body).encode(), self.headers)
        event = json.load(urllib.request.urlopen(join, timeout=30))["event_id"]
        stream = urllib.request.urlopen(f"{self.url}/gradio_api/queue/data?session_hash={self.session}", timeout=60)
        with stream:
            for line in stream:
                if not line.startswith(b"data:"):
                    continue
                message = json.loads(line[5:])
                if message["msg"] == "process_completed" and message["event_id"] == event:
                    return message["output"]["data"] if message["success"] else message["output"]
        raise AssertionError("the stream ended without an answer")

    def run(self, **settings: Any) -> dict[str, Any]:
        """A click on Run, with the model chosen first: what the explorer is given."""
        if settings["model"] != self.values["model"]:
            self.choose(settings["model"], settings["sentence"])
        (value,) = self.send("run", "click", self.settings(**settings))
        return json.loads(value)
