"""The Gradio page and the API endpoints: what answers.py answers, put into Gradio.

The page's settings are ordinary components, one a field of Request; the explorer paints results and asks for others.
"""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
import orjson
from gradio import routes, state_holder
from gradio.route_utils import FnIndexInferError

from . import answers, figures, lesson, models, notices, service
from .answers import ARGUMENTS
from .explorer import ASSETS
from .module import MASK_MODES
from .request import MAX_SEED, MAX_SIZE, Request

QUEUE_SIZE = 200
CONCURRENCY = 8  # how many requests may wait for a GPU or compute at once; the platform does the scheduling
MEMORY = {
    "state_session_capacity": 1000
}  # every API call is a session; Gradio would keep 10,000 with what they changed
FILE_AGE = 3600  # seconds that an exported file is kept
NO_FILES = ("attend", "tokenize")  # endpoints that answer with plain data
LOADING_TICK = 0.5  # seconds between two looks at a model on its way
LOADING_STARTS = 4  # looks at nothing happening, after which nothing will


# --- the API ---------------------------------------------------------------------------------------------------------


def _told(error: ValueError) -> gr.Error:
    """Our refusal as the error that reaches a client; what the platform raised passes unchanged."""
    if isinstance(error, gr.Error):
        return error
    service.refused()
    return gr.Error(_escape(str(error)), print_exception=False)


def _escape(message: str) -> str:
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # clients may render it as HTML


def endpoint(answer: Callable, returns: type, **extra: tuple[type, Any, str]) -> Callable:
    """A function for gr.api whose arguments are the fields of Request, then `extra` {name: (type, default, meaning)}.

    answer(request, **extra) gives plain data, or a file as (name, bytes); ValueErrors become one-sentence errors at the
    client.
    """

    def call(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        more = {name: given.pop(name, default) for name, (_, default, _) in extra.items()}
        with service.line(answer.__name__):
            try:
                request = Request(**given)
                service.note(model=request.source.name)
                found = answer(request, **more)
                return gr.FileData(path=_file(*found), orig_name=found[0]) if returns is gr.FileData else found
            except ValueError as error:
                raise _told(error) from None

    signature, call.__doc__ = answers.signature(answer, returns, extra)
    call.__signature__, call.__name__ = signature, answer.__name__
    call.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()} | {"return": returns}
    return call


def _file(name: str, data: bytes) -> str:
    """A file of its own for `data` in Gradio's temporary folder, whose files Gradio deletes when they are old.

    It leaves their folders, and it stops for good when a request comes in at the wrong moment: so the rest goes here.
    """
    for old in Path(_folder()).glob("attention-*"):
        with contextlib.suppress(OSError):  # somebody else was faster
            if time.time() - old.stat().st_mtime > 2 * FILE_AGE:
                shutil.rmtree(old)
    path = Path(tempfile.mkdtemp(dir=_folder(), prefix="attention-")) / name
    path.write_bytes(data)
    return str(path)


def _folder() -> str:
    from gradio.utils import get_upload_folder

    folder = Path(get_upload_folder())
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


# --- the page --------------------------------------------------------------------------------------------------------


def _answer(settings: dict[str, Any], gpu: bool, typing: bool = False) -> str:
    try:
        if typing and not answers.model_of(settings).live:
            return answers.value({"message": ""})  # an answer all the same: the explorer waits for one
        return answers.value(answers.painted(answers.from_page(settings), gpu))
    except ValueError as error:
        return answers.value(answers.message(error))


def _named(values: tuple) -> dict[str, Any]:
    """The page's settings by their names."""
    return dict(zip(ARGUMENTS, values, strict=True))


def _all(request: Request, said: str = "", **opened: Any) -> list[Any]:
    """Explorer and settings brought to a request, computed on the CPU, with something to say."""
    painted = answers.painted(request, gpu=False, **opened)
    return [answers.value(painted | {"message": said}), *_controls(request)]


def _controls(request: Request) -> list[Any]:
    return [gr.update(**properties) for properties in answers.controls(request)]


@service.logged
def run(*values: Any) -> str:
    """Run and Enter: through the GPU function."""
    return _answer(_named(values), gpu=True)


@service.logged
def preview(*values: Any) -> str:
    """Another setting: on the CPU."""
    return _answer(_named(values), gpu=False)


@service.logged
def typed(event: gr.EventData, *values: Any) -> tuple[str, None]:
    """Live typing, on the CPU: the sentence as it is in the box now, with the page's settings; edits are given up.

    A model that is too large for that waits for Run.
    """
    data = event._data if isinstance(event._data, dict) else {}
    settings = _named(values) | {"edits": None, "sentence": data.get("sentence")}
    return _answer(settings, gpu=False, typing=True), None


@service.logged
def choose_model(painted: str, *values: Any) -> list[Any]:
    """Another model: its own layer and head, its options in view, and its example where it cannot read the sentence.

    Where it cannot be loaded the choice goes back to the model of `painted`, the query of the run on screen. It is
    called whenever the focus leaves the box: nothing is done for the model that is there.
    """
    settings = _named(values)
    there = parse_qs(str(painted)).get("model", [models.DEFAULT])[0]
    if settings["model"] == there:
        return [gr.skip()] * (1 + len(ARGUMENTS))
    settings |= {"layer": None, "head": None, "tokenizer": "auto", "edits": None, "pad_to": 0, "checkpoint": None}
    try:
        return _all(*answers.readable(settings))
    except ValueError as error:  # the model cannot be loaded, or there is none of that name
        controls = [gr.skip()] * len(ARGUMENTS)
        controls[ARGUMENTS.index("model")] = there
        return [answers.value(answers.message(error)), *controls]


async def watch_loading(model: str | None) -> AsyncIterator[Any]:
    """A line about a model on its way into memory, as often as that changes, and then none again.

    Whoever asked for a run loads it; this one looks on, and gives up where nothing happens.
    """
    model = model if model in models.NAMES else models.DEFAULT
    seen, idle = None, 0
    while not models.get(model).loaded() and idle < LOADING_STARTS:
        await asyncio.sleep(LOADING_TICK)
        loading = models.get(model).loading()
        idle = 0 if loading else idle + 1
        if loading != seen:
            yield _loading_line(loading, first=seen is None)
            seen = loading
    yield _loading_line(None)


def _loading_line(loading: tuple[int, int] | None, first: bool = False) -> Any:
    if not loading:
        return gr.HTML("", visible=False)
    done, total = loading
    bar = f'<progress value="{done}" max="{total}"></progress>' if total else "<progress></progress>"
    role = ' role="alert"' if first else ""  # read out once, not at every change
    return gr.HTML(f"<label{role}>{notices.loading(done, total)} {bar}</label>", visible=True)


async def watch_arriving(visit: gr.Request) -> AsyncIterator[Any]:
    """The same for the model that a link names."""
    async for line in watch_loading(visit.query_params.get("model")):
        yield line


@service.logged
def ask(event: gr.EventData) -> list[Any]:
    """The explorer asks for another run: the whole request comes with the event.

    The box is written only where the sentence is part of the wish: somebody may be typing in it.
    """
    try:
        everything = _all(answers.from_event(event._data))
        if not event._data.get("other_sentence"):
            everything[1 + ARGUMENTS.index("sentence")] = gr.skip()
        return everything
    except ValueError as error:
        return [answers.value(answers.message(error)), *[gr.skip()] * len(ARGUMENTS)]


@service.logged
def arrive(visit: gr.Request) -> list[Any]:
    """A visit: a link's request computed on the CPU; without one the example that is there already stays."""
    unchanged = [gr.skip()] * len(ARGUMENTS)
    params = dict(visit.query_params)
    if "sentence" not in params:
        return [gr.skip(), *unchanged]
    try:
        return _all(Request.from_query(str(visit.query_params)), **answers.opened(params))
    except ValueError as error:
        return [answers.value(answers.example() | answers.message(error)), *unchanged]


@service.logged
def draw_sheet(*values: Any) -> tuple[Any, Any, str]:
    """The sheet of all steps, to look at and to take away."""
    try:
        result = answers.computed(answers.from_page(_named(values)), gpu=False)
    except ValueError as error:
        service.refused()
        return gr.skip(), gr.skip(), _escape(str(error))
    files = [_file(f"attention.{format}", figures.render(result, "all", format)) for format in figures.FORMATS]
    return gr.Image(files[0], visible=True), gr.Files(files, visible=True), ""


@service.logged
def take_away(format: str, *values: Any) -> tuple[Any, str]:
    """The run on the page as a file to download."""
    try:
        name, data = answers.export(answers.from_page(_named(values)), format)
    except ValueError as error:
        service.refused()
        return gr.skip(), _escape(str(error))
    return gr.Files([_file(name, data)], visible=True), ""


EXPORTS = {"json": "JSON", "npz": "NumPy", "csv": "Tables", "py": "PyTorch program", "html": "Web page"}
MODEL_CHOICES = [(models.get(name).title, name) for name in models.NAMES]
CSS = [ASSETS / "explorer.css", ASSETS.parent / "page.css"]

# Gradio evaluates this once the component is there; `'ask'` must stand here for explorer.ask to exist, and so 'typed'.
LOADER = (
    f"const path = '/gradio_api/file=' + {json.dumps(ASSETS.as_posix())} + '/gradio.js';"
    "import((window.gradio_config?.root || '') + path).then((explorer) => explorer.start("
    "{ element, props, watch, server, ask: (settings) => trigger('ask', settings),"
    " typed: (sentence) => trigger('typed', sentence) }));"
)

# What `painted` is at the moment of a choice: the query of the run on screen.
PAINTED = "(_, ...settings) => [document.querySelector('#explorer')?.dataset.request ?? '', ...settings]"


class Session(state_holder.SessionState):
    """What Gradio knows of a session, and every API call is one, without a copy of each component and of each answer.

    It would describe all components anew, half of what a small request costs, for links to a page as it stands; this
    page has links of its own. What is needed after all is described then.
    """

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks=()))

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


def _written(value: Any) -> str:
    """JSON as Gradio writes it for its own clients; for plain HTTP it takes Python's json, nine times as slow."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, whole numbers of more than 64 bits
        return json.dumps(value)


class Page(gr.Blocks):
    """A page that refuses what it cannot read with one sentence, where Gradio would log a traceback.

    What `/attend` and `/tokenize` answer goes out as it is.
    """

    async def preprocess_data(self, block_fn, *args, **kwargs):
        try:
            return await super().preprocess_data(block_fn, *args, **kwargs)
        except Exception:  # too few values, or a file where there is none; no code of ours has run yet
            with service.line(block_fn.name):
                service.refused()
            raise gr.Error(service.UNREADABLE, print_exception=False) from None

    async def postprocess_data(self, block_fn, predictions, state):
        if block_fn.api_name in NO_FILES:  # Gradio would look for files in every number
            return [predictions]
        return await super().postprocess_data(block_fn, predictions, state)


def build() -> gr.Blocks:
    """The page with its endpoints; `app.py` serves it."""
    state_holder.SessionState = Session
    routes.json = SimpleNamespace(dumps=_written, loads=json.loads)
    # Gradio sums up all past events after each one, for a page that is off here: it would get slower as it serves.
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000000")
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "100")
    start = Request(models.get(models.DEFAULT).example)
    at_start = dict(zip(ARGUMENTS, answers.controls(start), strict=True))

    with Page(title=lesson.TITLE, analytics_enabled=False, delete_cache=(FILE_AGE, FILE_AGE)) as page:
        gr.HTML(f"<h1>{lesson.TITLE}</h1>", elem_id="title")
        with gr.Row(elem_id="ask", equal_height=True):
            box = {}
            box["sentence"] = gr.Textbox(
                **at_start["sentence"],
                elem_id="sentence",
                label="Your sentence",
                show_label=False,
                container=False,
                placeholder="Type a sentence",
                lines=1,
                max_lines=4,
                scale=8,
                autofocus=False,
            )
            box["model"] = gr.Dropdown(
                MODEL_CHOICES,
                **at_start["model"],
                label="Weights from",
                elem_id="model",
                show_label=False,
                container=False,
                scale=4,
                min_width=200,
            )
            go = gr.Button("Run", variant="primary", elem_id="run", scale=1, min_width=96)
        line = gr.HTML(visible=False, padding=False, elem_id="loading")
        painted = gr.Textbox(visible=False)  # PAINTED fills it
        explorer = gr.HTML(
            value=answers.value(answers.example()),
            html_template="<div class='ax-mount'></div>",
            js_on_load=LOADER,
            elem_id="explorer",
            server_functions=[answers.parameters, answers.finished],
            apply_default_css=False,
        )
        with gr.Accordion("Settings", open=False, elem_id="settings"):
            with gr.Row():
                box["layer"] = gr.Dropdown(**at_start["layer"], label="Layer", min_width=120)
                box["head"] = gr.Dropdown(**at_start["head"], label="Head", min_width=120)
                box["tokenizer"] = gr.Dropdown(**at_start["tokenizer"], label="Split into", min_width=140)
                box["mask"] = gr.Dropdown(
                    [(lesson.MASK_TITLES[m], m) for m in MASK_MODES], **at_start["mask"], label="Mask", min_width=240
                )
                box["scale"] = gr.Checkbox(**at_start["scale"], label="Divide scores by √d", min_width=160)
            with gr.Row():
                box["pad_to"] = gr.Number(
                    **at_start["pad_to"], label="Pad to (tokens)", precision=0, minimum=0, min_width=120
                )
                box["pad_side"] = gr.Radio(
                    ["right", "left"], **at_start["pad_side"], label="Padding side", min_width=150
                )
                box["dropout"] = gr.Number(**at_start["dropout"], step=0.1, label="Dropout", min_width=120)
                box["seed"] = gr.Number(
                    **at_start["seed"], label="Seed", precision=0, minimum=0, maximum=MAX_SEED, min_width=120
                )
                box["head_off"] = gr.Checkbox(**at_start["head_off"], label="Attention off", min_width=160)
            with gr.Row():
                box["d_model"] = gr.Slider(
                    1, MAX_SIZE, **at_start["d_model"], step=1, label="Numbers a token (d_model)"
                )
                box["d_head"] = gr.Slider(1, MAX_SIZE, **at_start["d_head"], step=1, label="Numbers a query (d_head)")
                box["qkv_bias"] = gr.Checkbox(**at_start["qkv_bias"], label="Bias in q, k, v", min_width=140)
                box["positions"] = gr.Checkbox(**at_start["positions"], label="Add positions", min_width=140)
            box["checkpoint"] = gr.Number(
                **at_start["checkpoint"] | {"visible": False}, precision=0
            )  # "Watch it learn" sets it
            box["edits"] = gr.JSON(**at_start["edits"], visible=False)
        with gr.Accordion("Take it away", open=False, elem_id="take-away"):
            with gr.Row():
                small = {"size": "md", "min_width": 150}
                draw = gr.Button("Draw all steps", elem_id="draw-sheet", **small)
                takers = {f: gr.Button(title, elem_id=f"take-{f}", **small) for f, title in EXPORTS.items()}
            trouble = gr.Markdown(visible=True, container=False)
            files = gr.Files(visible=False, label="Ready to download", elem_id="sheet-files")
            sheet = gr.Image(visible=False, label="All steps", type="filepath", elem_id="sheet", buttons=["fullscreen"])

        settings = [box[name] for name in ARGUMENTS]
        everything = [explorer, *settings]
        # Request checks every value and says what is wrong; Gradio's checks know a session's choices only for a while.
        private = {"api_visibility": "private", "preprocess": False}
        quiet = private | {"show_progress": "hidden"}
        gr.on([go.click, box["sentence"].submit], run, settings, explorer, concurrency_limit=CONCURRENCY, **quiet)
        live = [c.input for name, c in box.items() if name not in ("sentence", "model", "edits")]
        gr.on(live, preview, settings, explorer, trigger_mode="always_last", concurrency_limit=CONCURRENCY, **quiet)
        # A dropdown's "input" comes twice a choice, "blur" once; whoever comes back no longer wants the choice before.
        choice = box["model"].blur(
            choose_model,
            [painted, *settings],
            everything,
            js=PAINTED,
            trigger_mode="multiple",
            concurrency_limit=CONCURRENCY,
            **quiet,
        )
        box["model"].focus(None, cancels=choice)
        box["model"].change(watch_loading, box["model"], line, concurrency_limit=None, **quiet)
        # "multiple": the explorer itself sends one wish at a time; Gradio's "always_last" loses the last custom event.
        explorer.typed(
            typed, settings, [explorer, box["edits"]], trigger_mode="multiple", concurrency_limit=CONCURRENCY, **quiet
        )
        explorer.ask(ask, None, everything, trigger_mode="multiple", concurrency_limit=CONCURRENCY, **quiet)
        draw.click(draw_sheet, settings, [sheet, files, trouble], **private)
        for format, button in takers.items():
            button.click(partial(take_away, format), settings, [files, trouble], **private)
        page.load(arrive, None, everything, **quiet)
        page.load(watch_arriving, None, line, concurrency_limit=None, **quiet)

        gr.api(endpoint(answers.attend, dict), api_name="attend", concurrency_limit=CONCURRENCY)
        gr.api(endpoint(answers.tokenize, dict), api_name="tokenize", concurrency_limit=CONCURRENCY)
        extra = {
            "step": (str, "all", f"{', '.join(figures.STEPS)}"),
            "format": (str, "png", "png, svg or pdf"),
            "theme": (str, "light", "light or dark"),
            "size": (str, "page", "column, page or slide"),
            "dpi": (int, 150, "dots an inch, for png"),
        }
        gr.api(endpoint(answers.figure, gr.FileData, **extra), api_name="figure", concurrency_limit=2)
        forms = "json, npz (numpy), csv (a zip of tables), py (a PyTorch program), html (a page that works offline)"
        extra = {"format": (str, "json", forms)}
        gr.api(endpoint(answers.export, gr.FileData, **extra), api_name="export", concurrency_limit=2)
    return page.queue(max_size=QUEUE_SIZE, api_open=False)  # nobody gets past the queue


def look() -> dict[str, Any]:
    """Arguments of launch(): fonts that need no network, and the style sheets."""
    gr.set_static_paths([str(ASSETS)])
    plain = ["system-ui", "Segoe UI", "Noto Sans", "sans-serif"]
    theme = gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=plain, font_mono=["ui-monospace", "Menlo", "monospace"]
    )
    shown = {"theme": theme, "css_paths": CSS, "footer_links": ["api"], "mcp_server": True}
    settings = service.app_settings((FnIndexInferError,))
    return shown | {"app_kwargs": settings, "max_file_size": "1mb", "enable_monitoring": False} | MEMORY
