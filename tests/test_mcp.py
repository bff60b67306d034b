"""The endpoints as an agent finds them: a real MCP client on the real server."""

import ast
import asyncio
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from servers import fetch

from attention import attend, export
from attention.request import ARGUMENTS

pytest.importorskip("mcp")

SENTENCE = "Your journey starts with one step"


@pytest.fixture(scope="module")
def ask(server):
    """ask(call) → what an async function of a session gives."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def session(call):
        async with (
            streamable_http_client(f"{server.url}/gradio_api/mcp/") as (read, write, _),
            ClientSession(read, write) as opened,
        ):
            await opened.initialize()
            return await call(opened)

    def run(call):  # in a thread of its own: a browser test before may have left an event loop running in this one
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, asyncio.wait_for(session(call), 60)).result()

    return run


def test_the_tools_say_what_they_do_and_what_every_argument_means(ask):
    tools = {tool.name: tool for tool in ask(lambda session: session.list_tools()).tools}
    assert set(tools) == {"attend", "tokenize", "figure", "export"}
    more = {"figure": ["step", "format", "theme", "size", "dpi"], "export": ["format"]}
    for name, tool in tools.items():
        assert len(tool.description) > 50 and "Args:" not in tool.description, name
        found = tool.inputSchema["properties"]
        assert list(found) == [*ARGUMENTS, *more.get(name, [])] and tool.inputSchema["required"] == ["sentence"]
        for argument, schema in found.items():
            assert len(schema["description"]) > 8, (name, argument)
            assert schema["description"] == ARGUMENTS.get(argument, schema["description"])


def test_tools_give_the_librarys_numbers(ask):
    async def call(session):
        return await session.call_tool("attend", {"sentence": SENTENCE, "model": "textbook"})

    got = ask(call)
    assert not got.isError
    answer = ast.literal_eval(got.content[0].text)  # Gradio writes an answer as Python does
    assert answer == export.as_dict(attend(SENTENCE, model="textbook"))


def test_files_come_as_an_address_and_figures_as_images_too(ask):
    async def call(session):
        wanted = {"sentence": "one step", "model": "textbook"}
        exported = await session.call_tool("export", wanted | {"format": "npz"})
        return exported, await session.call_tool("figure", wanted | {"step": "weights"})

    exported, drawn = ask(call)
    data = np.load(io.BytesIO(fetch(exported.content[0].text)[1]))
    assert np.array_equal(data["weights"], attend("one step", model="textbook")["weights"])
    assert drawn.content[0].type == "image" and drawn.content[0].mimeType == "image/png"


def test_a_refusal_is_an_error_with_its_sentence_and_the_next_call_works(ask):
    async def call(session):
        return [await session.call_tool("tokenize", {"sentence": sentence}) for sentence in (" ", "hi")]

    refused, worked = ask(call)
    assert refused.isError and refused.content[0].text == "Type a sentence first."
    assert not worked.isError
