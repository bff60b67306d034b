"""A Result as one self-contained page: the whole explorer, without network, without a server."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING

from . import lesson
from .explorer import ASSETS, pack_parameters, payload
from .text import shorten

if TYPE_CHECKING:
    from .compute import Result

_IMPORT = re.compile(r'(\bfrom\s+")\./([\w-]+\.js)"')

# Nothing may be fetched, whatever a token says: the browser is told so, too.
_POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; base-uri 'none'"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; max-width: 1200px; padding: 16px 20px; background: #ffffff;
  font-family: system-ui, "Segoe UI", "Noto Sans", sans-serif; }}
body.dark {{ background: #10161f; }}
{css}
</style>
<script type="importmap">{modules}</script>
</head>
<body>
<div id="explorer"><noscript>This page needs JavaScript to draw what is in it.</noscript></div>
<script type="application/json" id="run">{run}</script>
<script type="module">
import {{ mount }} from "explorer/main.js";
document.body.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
mount(document.getElementById("explorer")).show(JSON.parse(document.getElementById("run").textContent));
</script>
</body>
</html>
"""


def page(result: Result) -> str:
    """The page. It has nobody to ask for another run, so that the explorer leaves out the what-ifs."""
    run = payload(result) | {"parameters": pack_parameters(result.model, result.request)}
    title = f"{shorten(result.request.sentence, 60)} · {lesson.TITLE}"
    # "<" is all that could end a script element early or open a comment in it.
    embedded = json.dumps(run, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    css = (ASSETS / "explorer.css").read_text(encoding="utf-8")
    return _PAGE.format(policy=_POLICY, title=html.escape(title), css=css, modules=_modules(), run=embedded)


def frame(result: Result, height: int = 860) -> str:
    """The page in a frame of its own, for a notebook: neither sees the other."""
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page(result))}"></iframe>'


@cache
def _modules() -> str:
    """main.js and all it imports, as an import map of data: URLs: relative imports do not work from there."""
    found: dict[str, str] = {}
    todo = ["main.js"]
    while todo:
        name = todo.pop()
        if name not in found:
            source = (ASSETS / name).read_text(encoding="utf-8")
            todo += [imported for _, imported in _IMPORT.findall(source)]
            code = _IMPORT.sub(r'\1explorer/\2"', source).encode()
            found[name] = f"data:text/javascript;charset=utf-8;base64,{b64encode(code).decode()}"
    return json.dumps({"imports": {f"explorer/{name}": url for name, url in found.items()}})
