// The panel beside the stage: what the step does, in words and as a formula, and the selected cell taken apart.

import { h, put } from "./dom.js";
import { explain } from "./arithmetic.js";

/** Fills `host` with the step's sentence, formula and notice. */
export function lessonPart(host, run, step) {
  put(
    host,
    h("h3.ax-verb", {}, step.verb, h("span.ax-tensor", {}, step.tensor)),
    h("p.ax-words", {}, step.words),
    h("p.ax-formula", {}, step.formula),
    step.notice ? h("p.ax-notice", {}, h("b", {}, "Notice "), step.notice) : null,
    step.name === "masked" ? h("p.ax-small", {}, run.lesson.order_note) : null,
  );
}

/** Fills the live region #arithmetic with the cell taken apart. onJump(tensor, row, column) follows the chain,
 *  onEdit(tensor, row, column, value or null) changes the number or takes the change back, onLayer(layer, row) goes to
 *  the other layer's head. */
export function arithmeticPart(region, run, parameters, at, onJump, fetchParameters, onEdit, onLayer) {
  if (!at) {
    put(region, h("p.ax-small", {}, "Choose a cell to take it apart."));
    return;
  }
  const { tensor, row, column } = at;
  const open = region.querySelector("details")?.open ?? false;
  const declared = run.lesson.matrices[tensor];
  const told = explain(run, parameters, tensor, row, column);
  if (told.needs) fetchParameters();
  const lines = told.needs ? ["Fetching the weights of this head …"] : told.lines;
  put(
    region,
    h(
      "p.ax-cell-title",
      {},
      h("span", {}, `${declared.symbol} `, h("span.ax-where", { dir: "auto" }, told.title)),
      h("output.ax-value", {}, told.result.text),
    ),
    h("div.ax-lines", {}, lines.map((line) => h("p", { dir: "ltr" }, line))),
    told.bars ? bars(told.bars) : null,
    told.table ? details(told.table, open) : null,
    told.versus ? h("div.ax-lines.ax-versus", {}, told.versus.map((line) => h("p", { dir: "ltr" }, line))) : null,
    told.note ? h("p.ax-small", {}, told.note) : null,
    chain(run, at, onJump),
    onLayer && run.model.layers === 2 ? otherLayer(run, at, onLayer) : null,
    onEdit && ["scores", "weights"].includes(tensor) ? change(run, at, onEdit) : null,
  );
}

/** From a key of the second layer to what the first layer wrote there, and back. */
function otherLayer(run, { tensor, row, column }, onLayer) {
  const declared = run.lesson.matrices[tensor];
  if (run.settings.layer === 1) {
    const token = declared.columns === "key" ? column : row;
    return h("button.ax-jump.ax-deeper", { type: "button", onclick: () => onLayer(0, token) }, `What is in ${run.names[token]}'s key? Look into the first layer`);
  }
  const last = run.tokens.reduce((at, token, i) => (token.real ? i : at), 0);
  return h("button.ax-jump.ax-deeper", { type: "button", onclick: () => onLayer(1, last) }, "Back to the second layer");
}

/** Another number in this cell, to see what follows from it. */
function change(run, { tensor, row, column }, onEdit) {
  const edited = run.edit(tensor, row, column);
  const now = run.tensors[tensor].at(row, column);
  const field = h("input", { type: "number", step: "any", value: Number(now.toPrecision(6)), "aria-label": "another number for this cell" });
  const set = (event) => {
    event.preventDefault();
    if (field.value !== "" && Number.isFinite(field.valueAsNumber)) onEdit(tensor, row, column, field.valueAsNumber);
  };
  return h(
    "form.ax-change",
    { onsubmit: set },
    h("span", {}, "What if it were"),
    field,
    h("button.ax-jump", {}, "Set"),
    edited ? h("button.ax-jump", { type: "button", onclick: () => onEdit(tensor, row, column, null) }, "Take back") : null,
  );
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

/** Vectors as aligned bars in the order of their numbers, each row on a scale of its own. */
function bars(vectors) {
  const rows = vectors.map(({ name, role, values }) => {
    const limit = Math.max(1e-12, ...Array.from(values, Math.abs));
    const strips = Array.from(values, (value) => {
      const height = `${(Math.abs(value) / limit) * 50}%`;
      return h("i", {}, h("b", { style: value < 0 ? { height, top: "50%" } : { height, bottom: "50%" } }));
    });
    return h("div.ax-bar-row", {}, h("span", { title: name }, name), h(`div.ax-strip.ax-hue-${role || "none"}`, {}, strips));
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
