// The panel beside the stage: what the step does, in words and as a formula, and the selected cell taken apart.

import { bars } from "./bars.js";
import { h, once, put, svg } from "./dom.js";
import { lastReal } from "./focus.js";
import { explain, explainGuess, titleOf } from "./arithmetic.js";
import { glossary } from "./glossary.js";
import { percent } from "./numbers.js";

/** Fills `host` with the step's sentence, formula and notice. */
export function lessonPart(host, run, step) {
  const note = step.name === "masked" ? run.lesson.order_note : null;
  const fill = () => put(
    host,
    h("h3.ax-verb", {}, step.verb, h("span.ax-tensor", {}, step.tensor)),
    h("p.ax-words", {}, step.words),
    h("p.ax-formula", {}, step.formula),
    glossary(run.lesson.glossary, step.terms),
    step.notice ? h("p.ax-notice", {}, h("b", {}, "Notice "), step.notice) : null,
    note ? h("p.ax-small", {}, note) : null,
  );
  once(host, [step, note], fill);
}

/** Fills the live region #arithmetic with the cell taken apart. onJump(tensor, row, column) follows the chain,
 *  onEdit(tensor, row, column, value or null) changes the number or takes the change back, onLayer(layer, row) goes to
 *  the other layer's head. */
export function arithmeticPart(region, run, parameters, at, onJump, fetchParameters, onEdit, onLayer) {
  if (!at) {
    put(region);
    return;
  }
  const open = region.querySelector("details")?.open ?? false;
  if (at.guess !== undefined) {
    put(region, toldPart({ ...explainGuess(run, at.guess), symbol: "" }, open));
    return;
  }
  const { tensor, row, column } = at;
  const told = explain(run, parameters, tensor, row, column);
  if (told.needs) fetchParameters();
  const lines = told.needs ? ["Fetching the weights of this head …"] : told.lines;
  put(
    region,
    toldPart({ ...told, lines, symbol: run.lesson.matrices[tensor].symbol }, open),
    chain(run, at, onJump),
    onLayer && run.model.layers === 2 ? otherLayer(run, run.lesson.matrices[tensor], row, column, onLayer) : null,
    onEdit && ["scores", "weights"].includes(tensor) ? change(run, at, onEdit) : null,
  );
}

/** The same for a cell of the difference of two runs. */
export function differencePart(region, run, { tensor, row, column }, told) {
  const declared = run.lesson.matrices[tensor];
  put(region, toldPart({ ...told, title: titleOf(run, declared, row, column), symbol: declared.symbol }, false));
}

/** Title and result, the lines, bars, the folded table, and what else there is to say. */
function toldPart({ symbol, title, result, lines, bars: vectors, table, versus, note }, open) {
  return [
    h("p.ax-cell-title", {}, h("span", {}, `${symbol} `, h("span.ax-where", { dir: "auto" }, title)), h("output.ax-value", {}, result.text)),
    h("div.ax-lines", {}, lines.map((line) => h("p", { dir: "ltr" }, line))),
    vectors ? strips(vectors) : null,
    table ? details(table, open) : null,
    versus ? h("div.ax-lines.ax-versus", {}, versus.map((line) => h("p", { dir: "ltr" }, line))) : null,
    note ? h("p.ax-small", {}, note) : null,
  ];
}

/** Where this cell comes from and where it goes: one jump each. */
function chain(run, { tensor, row, column }, onJump) {
  const before = run.lesson.matrices[tensor].operands.filter((name) => name in run.tensors);
  const after = Object.values(run.lesson.matrices).find((m) => m.operands.includes(tensor) && m.name in run.tensors);
  const jump = (name, text) => h("button.ax-jump", { type: "button", onclick: () => onJump(name, row, column) }, text);
  const links = [
    ...before.map((name) => jump(name, `← ${run.lesson.matrices[name].title}`)),
    after ? jump(after.name, `${after.title} →`) : null,
  ];
  return h("div.ax-chain", {}, links);
}

/** From a key of the second layer to what the first layer wrote there, and back. */
function otherLayer(run, declared, row, column, onLayer) {
  const into = (layer, token, text) => h("button.ax-jump.ax-deeper", { type: "button", onclick: () => onLayer(layer, token) }, text);
  if (run.settings.layer === 1) {
    const token = declared.columns === "key" ? column : declared.rows === "key" ? row : null;
    return token === null ? null : into(0, token, `What is in ${run.names[token]}'s key? Look into the first layer`);
  }
  const last = lastReal(run);
  return into(1, last, "Back to the second layer");
}

/** Another number in this cell, to see what follows from it. */
function change(run, { tensor, row, column }, onEdit) {
  const now = run.tensors[tensor].at(row, column);
  const field = h("input", { type: "number", step: "any", required: true, value: Number(now.toPrecision(6)), "aria-label": "another number for this cell" });
  const set = (event) => {
    event.preventDefault();
    if (Number.isFinite(field.valueAsNumber)) onEdit(tensor, row, column, field.valueAsNumber);
  };
  const back = () => onEdit(tensor, row, column, null);
  return h(
    "form.ax-change",
    { onsubmit: set },
    h("span", {}, "What if it were"),
    field,
    h("button.ax-jump", {}, "Set"),
    run.edit(tensor, row, column) ? h("button.ax-jump", { type: "button", onclick: back }, "Take back") : null,
  );
}

/** Vectors as aligned bars in the order of their numbers, each row on a scale of its own. */
function strips(vectors) {
  const half = 17; // pixels above and below the axis
  const rows = vectors.map(({ name, role, values }) => {
    const limit = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
    const heights = Array.from(values, (value) => value && Math.sign(value) * Math.max(0.5, (Math.abs(value) / limit) * half));
    const shape = { viewBox: `0 0 ${values.length} ${2 * half}`, preserveAspectRatio: "none" };
    const strip = h(`div.ax-strip.ax-hue-${role || "none"}`, {}, svg("svg", shape, svg("path", { d: bars(heights, 1, half) })));
    return h("div.ax-bar-row", {}, h("span", { title: name }, name), strip);
  });
  return h("div.ax-bars", { "aria-hidden": "true" }, rows);
}

/** A folded table; its rows are made when it is first opened. `open` keeps it unfolded from cell to cell. */
function details({ name, head, rows }, open) {
  const body = h("tbody");
  const table = h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))), body);
  const scroll = h("div.ax-table-scroll", { tabindex: 0, role: "region", "aria-label": name }, table);
  const fold = h("details.ax-table", { open }, h("summary", {}, name), scroll);
  const unfold = () => {
    if (!fold.open || body.childElementCount) return;
    for (const [first, ...rest] of rows()) {
      body.append(h("tr", {}, h("th", { scope: "row", dir: "auto" }, first), rest.map((text) => h("td", { dir: "ltr" }, text))));
    }
  };
  fold.addEventListener("toggle", unfold);
  unfold();
  return fold;
}
