// The explorer in its gr.HTML component. Gradio gives `element`, `props`, `watch`, `trigger` and `server` to the script
// that loads this (see page.py).

import { mount } from "./main.js";

export function start({ element, props, watch, ask, typed, server }) {
  const root = element.closest("#explorer") ?? element;
  const asking = oneAtATime(([send, what]) => send(what));
  const view = mount(
    element.querySelector(".ax-mount"),
    {
      ask: (settings, otherSentence) => asking.want([ask, { settings, other_sentence: otherSentence }]),
      parameters: (query) => server.parameters(query),
      address: (query, own) => merged(query, own).href,
      // Only what a visitor does comes here, never the first paint: a link must be read before anything is written.
      remember: sparingly((query, own) => window.history.replaceState(window.history.state, "", merged(query, own))),
    },
    root,
  );
  const show = (value) => {
    view.show(value);
    asking.answered();
  };
  let turn = null; // answers are shown in the order in which they came, also where one has to be fetched
  const draw = () => {
    const value = JSON.parse(props.value); // text: see page.py
    if (!turn && !value.fetch) return show(value);
    const mine = (turn = Promise.resolve(turn)
      .then(() => (value.fetch ? fetched(server, value) : value))
      .then(show)
      .finally(() => turn === mine && (turn = null)));
  };
  watch("value", draw);
  draw();
  listen((sentence) => asking.want([typed, sentence]));
}

/** A large run, which does not travel inside the component's value. */
async function fetched(server, value) {
  const run = await server.finished(value.query).catch(() => ({}));
  return run.tensors ? { ...run, ...value } : { message: "The answer was lost on its way. Press Run once more." };
}

const PATIENCE = 4000; // milliseconds after which an answer is no longer waited for

/** Sends one wish at a time; of those that come meanwhile the last one follows. So answers arrive in order. */
function oneAtATime(send) {
  let [waiting, timer, next] = [false, 0, null];
  const go = (wish) => {
    waiting = true;
    timer = setTimeout(answered, PATIENCE);
    send(wish);
  };
  const answered = () => {
    clearTimeout(timer);
    waiting = false;
    const wish = next;
    next = null;
    if (wish) go(wish);
  };
  return { answered, want: (wish) => (waiting ? (next = wish) : go(wish)) };
}

const [GAP, CREDIT] = [160, 15000]; // milliseconds: Chromium takes 200 changes of the address in 30 seconds and drops the rest

/** At once where little was written lately, else a little later, and then only what was wanted last. */
function sparingly(write) {
  let [due, timer] = [0, 0];
  return (...what) => {
    const go = () => {
      due = Math.max(due, Date.now() - CREDIT) + GAP;
      write(...what);
    };
    clearTimeout(timer);
    const wait = due - Date.now();
    if (wait > 0) timer = setTimeout(go, wait);
    else go();
  };
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
