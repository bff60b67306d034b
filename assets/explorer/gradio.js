// The explorer in its gr.HTML component. Gradio gives `element`, `props`, `watch`, `trigger` and `server` to the script
// that loads this (see page.py).

import { mount } from "./main.js";

export function start({ element, props, watch, ask, typed, server }) {
  const root = element.closest("#explorer") ?? element;
  const view = mount(
    element.querySelector(".ax-mount"),
    {
      ask,
      parameters: (query) => server.parameters(query),
      address: (query, own) => merged(query, own).href,
      // Only what a visitor does comes here, never the first paint: a link must be read before anything is written.
      remember: (query, own) => window.history.replaceState(window.history.state, "", merged(query, own)),
    },
    root,
  );
  const draw = () => props.value && view.show(props.value);
  watch("value", draw);
  draw();
  listen(typed);
}

let told = null; // who hears of typing: the explorer that was mounted last

/** Gradio's own input event comes with key presses only, Enter among them; the element's comes with every change. */
function listen(typed) {
  if (!told) {
    document.addEventListener("input", (event) => {
      if (event.target.closest("#sentence")) told({ sentence: event.target.value });
    });
  }
  told = typed;
}

/** This page's address with the explorer's query; parameters that are not in `own` stay as they are. */
function merged(query, own) {
  const url = new URL(window.location.href);
  const foreign = [...url.searchParams].filter(([name]) => !own.has(name));
  url.search = new URLSearchParams([...new URLSearchParams(query), ...foreign]).toString();
  return url;
}
