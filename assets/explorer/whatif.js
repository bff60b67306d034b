// What if: the settings that the open step is about. Asking recomputes in Python; nothing is worked out here.

import { h } from "./dom.js";

/** Fills `host` with the step's questions; empty where there are none, or nobody to ask. */
export function whatIf(host, run, step, query, ask) {
  const { settings } = run;
  const parts = [];
  if (ask && step === "scaled") {
    parts.push(toggle("Divide by √d", settings.scale, (on) => ask({ scale: on })));
  }
  if (ask && (step === "masked" || step === "weights")) {
    parts.push(
      choice("Mask", Object.entries(run.lesson.masks), settings.mask, (mask) => ask({ mask })),
    );
  }
  if (ask && step === "masked") {
    const padded = settings.pad_to > run.tokens.filter((token) => token.real).length ? settings.pad_side : "none";
    const real = run.tokens.filter((token) => token.real).length;
    const pad = (side) => ask(side === "none" ? { pad_to: 0, pad_side: "right" } : { pad_to: real + 2, pad_side: side });
    parts.push(choice("Padding", [["none", "none"], ["left", "two on the left"], ["right", "two on the right"]], padded, pad));
  }
  if (ask && run.tokens[query + 1]?.real && run.tokens[query].real) {
    const names = [run.names[query], run.names[query + 1]];
    parts.push(h("button.ax-jump", { type: "button", onclick: () => ask({ sentence: swapped(run, query), edits: [] }) }, `Swap ${names[0]} and ${names[1]}`));
  }
  if (ask && settings.edits.length) {
    const count = settings.edits.length;
    parts.push(
      h("button.ax-jump", { type: "button", onclick: () => ask({ edits: [] }) }, `Undo ${count === 1 ? "the change" : `all ${count} changes`}`),
    );
  }
  host.replaceChildren(...(parts.length ? [h("h4", {}, "What if"), ...parts] : []));
}

/** The sentence with the pieces at `index` and after it exchanged; the space before each place stays where it is. */
export function swapped(run, index) {
  const texts = run.tokens.map((token) => token.text);
  const [a, b] = [texts[index], texts[index + 1]];
  const lead = (text) => text.match(/^\s*/)[0];
  texts[index] = lead(a) + b.trimStart();
  texts[index + 1] = lead(b) + a.trimStart();
  return texts.join("");
}

/** The control that moves through the training steps; hidden for a model without them. It is made once a mount: a
 *  slider that were replaced while it is dragged would be let go. */
export function watchItLearn(host, run, ask) {
  const { checkpoints, losses, learning } = run.model;
  host.hidden = !checkpoints.length || !ask;
  if (host.hidden) return;
  if (!host.firstChild) host.append(learner());
  const [slider, told, note] = ["input", ".ax-learn-step", ".ax-learn-note"].map((part) => host.querySelector(part));
  const last = checkpoints.at(-1);
  const now = run.settings.checkpoint ?? last;
  const place = checkpoints.indexOf(now);
  slider.max = checkpoints.length - 1;
  if (!slider.matches(":active")) slider.value = place;
  slider.setAttribute("aria-valuetext", `${now} training steps`);
  slider.oninput = () => ask({ checkpoint: checkpoints[slider.value] === last ? null : checkpoints[slider.value] });
  told.textContent = `after ${now.toLocaleString("en")} of ${last.toLocaleString("en")} training steps · loss ${losses[place].toFixed(2)}`;
  note.textContent = learning;
  if (now !== last) host.firstChild.open = true;
}

function learner() {
  const slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "training steps" });
  return h(
    "details",
    {},
    h("summary", {}, "Watch it learn"),
    h("div.ax-learn", {}, slider, h("span.ax-learn-step"), h("span.ax-learn-note")),
  );
}

function toggle(name, on, change) {
  const box = h("input", { type: "checkbox", checked: on, onchange: () => change(box.checked) });
  return h("label.ax-option", {}, box, " ", name);
}

function choice(name, options, chosen, change) {
  const select = h(
    "select",
    { onchange: () => change(select.value) },
    options.map(([value, title]) => h("option", { value, selected: value === chosen }, title)),
  );
  return h("label.ax-option", {}, name, " ", select);
}
