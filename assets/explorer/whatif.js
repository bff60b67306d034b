// What if: the settings that the open step is about. Asking recomputes in Python; nothing is worked out here.

import { h } from "./dom.js";

/** Fills `host` with the step's questions; empty where there are none, or nobody to ask. */
export function whatIf(host, run, step, ask) {
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
  if (ask && settings.edits.length) {
    const count = settings.edits.length;
    parts.push(
      h("button.ax-jump", { type: "button", onclick: () => ask({ edits: [] }) }, `Undo ${count === 1 ? "the change" : `all ${count} changes`}`),
    );
  }
  host.replaceChildren(...(parts.length ? [h("h4", {}, "What if"), ...parts] : []));
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
