// What stands above the steps: what the head found, the guess with its switch, examples, notes, and the rail of steps.

import { h, keepFocus, once, put } from "./dom.js";
import { percent } from "./numbers.js";
import { fill } from "./quiz.js";
import { watchItLearn } from "./whatif.js";

const BESIDE = 9; // tokens: up to so many leave room for the examples beside the sentence

/** Paints a run's top into `part`. ask(changes) is null where nobody can be asked; onStep(name) opens a step, onQuiz() the question. */
export function topPart(part, run, ask, onStep, onQuiz) {
  part.headline.textContent = run.lesson.headline;
  put(part.model, h("span", {}, `${run.model.title} · `), `computed on the ${run.device === "cuda" ? "GPU" : "CPU"}`);
  once(part.notes, run.notes, () => put(part.notes, run.notes.map((note) => h("li", {}, note))));
  part.guess.hidden = !run.guess;
  const quiz = run.lesson.quiz ? quizButton(run, onQuiz) : null;
  if (run.guess) keepFocus(part.guess, () => put(part.guess, guessWord(run.guess), ask ? headSwitch(run.settings.head_off, ask) : null, quiz));
  part.row.classList.toggle("ax-long", run.tokens.length > BESIDE);
  const { examples } = run.model;
  once(part.examples, examples, () => put(part.examples, ask ? examples.map((sentence) => example(sentence, ask)) : null));
  [...part.examples.children].forEach((button, i) => button.setAttribute("aria-pressed", String(examples[i] === run.settings.sentence)));
  watchItLearn(part.learn, run, ask);
  const { steps } = run.lesson;
  once(part.rail, steps.map((step) => [step.name, step.verb]), () => put(part.rail, steps.map((step, index) => railButton(step, index, onStep))));
}

/** Marks the open step in the rail and brings it into view. */
export function markStep(part, name, count) {
  const buttons = [...part.rail.children];
  const at = buttons.findIndex((button) => button.dataset.step === name);
  part.back.disabled = at === 0;
  part.next.disabled = at === count - 1;
  part.count.textContent = `Step ${at + 1} of ${count}`;
  if (buttons[at].hasAttribute("aria-current")) return;
  buttons.forEach((button, index) => {
    if (index === at) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  });
  part.rail.scrollLeft = buttons[at].offsetLeft - part.rail.clientWidth / 2 + buttons[at].offsetWidth / 2;
}

function guessWord(guess) {
  return h("span.ax-guess-word", {}, "→ ", h("b", { dir: "auto" }, guess.names[0]), ` ${percent(guess.probabilities[0])}`);
}

function headSwitch(off, ask) {
  const state = { type: "button", role: "switch", "aria-checked": String(!off), onclick: () => ask({ head_off: !off }) };
  return h("button.ax-pill.ax-switch", state, off ? "Attention off" : "Attention on");
}

function quizButton(run, onQuiz) {
  return h("button.ax-pill", { type: "button", dir: "auto", onclick: onQuiz }, fill(run.lesson.quiz.button, { guess: run.guess.names[0] }));
}

function example(sentence, ask) {
  const fresh = { sentence, edits: [], pad_to: 0, pad_side: "right" };
  return h("button.ax-example", { type: "button", dir: "auto", onclick: () => ask(fresh) }, sentence);
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
