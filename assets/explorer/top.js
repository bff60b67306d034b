// What stands above the steps: what the head found, the guess with its switch, examples, notes, and the rail of steps.

import { h, put } from "./dom.js";
import { percent } from "./numbers.js";
import { watchItLearn } from "./whatif.js";

const BESIDE = 9; // tokens: up to so many leave room for the examples beside the sentence

/** Paints a run's top into `part`. ask(changes) is null where nobody can be asked; onStep(name) opens a step. */
export function topPart(part, run, ask, onStep) {
  part.headline.textContent = run.lesson.headline;
  part.model.textContent = `${run.model.title} · computed on the ${run.device === "cuda" ? "GPU" : "CPU"}`;
  put(part.notes, run.notes.map((note) => h("li", {}, note)));
  part.guess.hidden = !run.guess;
  if (run.guess) put(part.guess, guessWord(run.guess), ask ? headSwitch(run.settings.head_off, ask) : null);
  part.row.classList.toggle("ax-long", run.tokens.length > BESIDE);
  put(part.examples, ask ? run.model.examples.map((sentence) => example(sentence, run, ask)) : null);
  watchItLearn(part.learn, run, ask);
  put(part.rail, run.lesson.steps.map((step, index) => railButton(step, index, onStep)));
}

/** Marks the open step in the rail and brings it into view. */
export function markStep(part, name, count) {
  const buttons = [...part.rail.children];
  const at = buttons.findIndex((button) => button.dataset.step === name);
  buttons.forEach((button, index) => {
    if (index === at) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  });
  part.rail.scrollLeft = buttons[at].offsetLeft - part.rail.clientWidth / 2 + buttons[at].offsetWidth / 2;
  part.back.disabled = at === 0;
  part.next.disabled = at === count - 1;
  part.count.textContent = `Step ${at + 1} of ${count}`;
}

function guessWord(guess) {
  return h("span.ax-guess-word", {}, "→ ", h("b", { dir: "auto" }, guess.names[0]), ` ${percent(guess.probabilities[0])}`);
}

function headSwitch(off, ask) {
  const state = { type: "button", role: "switch", "aria-checked": String(!off), onclick: () => ask({ head_off: !off }) };
  return h("button.ax-switch", state, off ? "Attention off" : "Attention on");
}

function example(sentence, run, ask) {
  const fresh = { sentence, edits: [], pad_to: 0, pad_side: "right" };
  const here = sentence === run.settings.sentence;
  return h("button.ax-example", { type: "button", dir: "auto", "aria-pressed": String(here), onclick: () => ask(fresh) }, sentence);
}

function railButton(step, index, onStep) {
  const button = h(
    "button.ax-step",
    { type: "button", "data-step": step.name, onclick: () => onStep(step.name) },
    h("span.ax-step-number", { "aria-hidden": "true" }, index + 1),
    step.verb,
  );
  button.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: button.previousElementSibling, ArrowRight: button.nextElementSibling }[event.key];
    if (!to) return;
    event.preventDefault();
    to.focus();
    onStep(to.dataset.step);
  });
  return button;
}
