// The stage: the matrices of one step, operands and result laid out like a multiplication on paper.
// Every drawn matrix is a MatrixView; the labels around them are text, thinned where they would not fit.

import { h } from "./dom.js";
import { MatrixView } from "./matrix.js";
import { gutter, labelStride, stageSizes } from "./layout.js";
import { hiddenBecause } from "./payload.js";
import { print } from "./numbers.js";

const GROWS = 32; // tokens: up to so many the stage is as tall as it needs, beyond it scrolls
const HUE = { query: "--ax-query", key: "--ax-key", value: "--ax-value", "": "--ax-cell" };

/** stage(host, run, step, width, events) → {views: {tensor: MatrixView}, draw(colours)} */
export function stage(host, run, step, width, events) {
  const measure = measurer(host);
  const label = gutter(run.names, width, measure);
  const shape = { T: run.tokens.length, d_in: run.tensors.x.columns, d_out: run.tensors.q.columns, width, label, tall: window.innerHeight, stacked: stackOf(run).length };
  const build = { run, step, label, shape, sizes: stageSizes(step, shape), events, views: {}, measure };
  const layout = { qk: asking, scores: square, scaled: square, masked: square, weights: square, context: blending }[step];
  const body = (layout ?? embedding)(build);
  host.replaceChildren(h(`div.ax-scroll${run.tokens.length > GROWS ? ".ax-bounded" : ""}`, { tabindex: -1 }, body));
  return build.views;
}

/** One view, registered under its tensor's name. */
function view(build, tensor, { width, height, transposed = false, faint = false, still = false }) {
  const { run, events } = build;
  const declared = run.lesson.matrices[tensor];
  const matrix = run.tensors[tensor] ?? run.parameters[tensor];
  const square = declared.rows === "query" && declared.columns === "key";
  const afterHidden = tensor === "weights" || tensor === "masked";
  const made = new MatrixView({
    tensor,
    matrix,
    width,
    height,
    transposed,
    still,
    unit: declared.unit,
    digits: faint ? null : run.digits,
    label: `${declared.title}: ${matrix.rows} × ${matrix.columns}. Arrow keys move from cell to cell.`,
    hidden: (row, column) => {
      if (square && afterHidden) {
        const why = hiddenBecause(run, row, column);
        const number = matrix.at(row, column);
        return why && (number === -Infinity || number === 0) ? why : null;
      }
      return null;
    },
    onPoint: (row, column, kind) => events.onPoint(tensor, row, column, kind),
    onKey: (by) => events.onKey(tensor, by),
  });
  made.hue = HUE[declared.role];
  made.host.classList.toggle("ax-faint", faint);
  build.views[tensor] = made;
  return made;
}

/** The name of a matrix above it, with its shape and its scale. */
function caption(build, tensor, made, text = null) {
  const declared = build.run.lesson.matrices[tensor];
  const { rows, columns } = made.matrix;
  const size = made.transposed ? `${columns} × ${rows}` : `${rows} × ${columns}`;
  return h(
    "div.ax-caption",
    { style: { color: `var(${made.hue === "--ax-cell" ? "--ax-ink" : made.hue})` } },
    h("b", {}, text ?? declared.symbol),
    h("span", {}, declared.rows === "token" ? ` ${declared.title}, ${size}` : ` ${size}`),
  );
}

function legend(made) {
  const limit = print(made.limit, 2).text;
  const ends = made.unit ? ["0", "1"] : [`−${limit}`, limit];
  return h(
    "div.ax-legend",
    { "aria-hidden": "true" },
    h("span", {}, ends[0]),
    h(`i.${made.unit ? "ax-ramp-unit" : "ax-ramp-signed"}`),
    h("span", {}, ends[1]),
  );
}

function rowLabels(build, height, axis) {
  const stride = labelStride(height, 15);
  const labels = build.run.names.map((name, i) =>
    h(
      "span.ax-row-label",
      { style: { height: `${height}px` }, "data-row": i, title: name },
      i % stride === 0 ? h("span", { dir: "auto" }, name) : "",
    ),
  );
  return h("div.ax-row-labels", { style: { width: `${build.label}px` }, "data-axis": axis }, labels);
}

function columnLabels(build, width) {
  const longest = Math.max(...build.run.names.map(build.measure));
  const upright = longest + 2 <= width;
  const stride = labelStride(width, upright ? 0 : 16);
  const labels = build.run.names.map((name, i) =>
    h(
      "span.ax-column-label",
      { style: { width: `${width}px` }, "data-column": i, title: name },
      i % stride === 0 ? h("span", { dir: "auto" }, name) : "",
    ),
  );
  const height = upright ? 20 : Math.min(110, Math.ceil(longest) + 8);
  return h(`div.ax-column-labels${upright ? "" : ".ax-slanted"}`, { style: { height: `${height}px` } }, labels);
}

const cell = (area, ...children) => h("div", { style: { gridArea: area } }, children);

/** The T × T steps: q on the left, kᵀ on top, the matrix in the corner; it stays where it is from step to step. */
function square(build) {
  const { run, step, sizes, shape } = build;
  const T = shape.T;
  const made = view(build, step, { width: sizes.cell, height: sizes.cell });
  const summed = step === "weights" && made.unit && sizes.sums; // a difference of two runs has no sums to show
  const faint = step !== "scores";
  const parts = [];
  const corner = [];
  if (sizes.tile) {
    const q = view(build, "q", { width: sizes.tile / shape.d_out, height: sizes.cell, faint });
    const k = view(build, "k", { width: sizes.cell, height: sizes.tile / shape.d_out, transposed: true, faint });
    parts.push(cell("q", q.host), cell("k", k.host));
    corner.push(caption(build, "k", k, "kᵀ →"), caption(build, "q", q, "q ↓"));
  }
  const bars = h("div.ax-sums", {
    style: { gridArea: "sums", width: `${sizes.sums}px` },
    "aria-hidden": "true",
  });
  if (summed) {
    for (let row = 0; row < T; row++) {
      const total = run.tensors.weights.row(row).reduce((a, b) => a + b, 0);
      bars.append(h("span", { style: { height: `${sizes.cell}px` } }, print(total, 2).text));
    }
  }
  return h(
    `div.ax-paper.ax-square${sizes.narrow ? ".ax-narrow" : ""}`,
    { style: { columnGap: `${sizes.gap}px` } },
    cell("axis-k", h("span.ax-axis", {}, `${run.lesson.axes.key} →`)),
    h("div.ax-corner", { style: { gridArea: "corner" } }, corner, h("span.ax-axis", {}, `${run.lesson.axes.query} ↓`)),
    cell("columns", columnLabels(build, sizes.cell)),
    cell("axis-sums", summed ? h("span.ax-axis", {}, "sum") : ""),
    cell("rows", rowLabels(build, sizes.cell, run.lesson.axes.query)),
    ...parts,
    cell("result", made.host),
    bars,
    step === "weights" && made.unit ? h("div.ax-rowbars", { style: { gridArea: "bars" }, "aria-hidden": "true" }, rowBars(T, sizes.cell)) : null,
    cell("foot", h("div.ax-foot", {}, caption(build, step, made), legend(made))),
  );
}

/** Scrolls a large stage so that the chosen row of `view` can be seen. */
export function bringIntoView(host, view, row) {
  const scroll = host.querySelector(".ax-scroll");
  if (!view || row === undefined || !scroll || scroll.scrollHeight <= scroll.clientHeight) return;
  const top = view.host.offsetTop + row * view.height;
  if (top + view.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top - scroll.clientHeight / 2;
}

/** One bar a key, filled by `fillRowBars`: the selected row once more, without colour. */
function rowBars(T, width) {
  return Array.from({ length: T }, () => h("i", { style: { width: `${width}px` } }, h("b")));
}

/** Sets the bars to a row of shares. */
export function fillRowBars(host, shares) {
  host.querySelectorAll(".ax-rowbars b").forEach((bar, i) => {
    bar.style.height = shares[i] > 0 ? `max(1px, ${Math.min(1, shares[i]) * 100}%)` : "0";
  });
}

/** Blend: weights on the left, v on top, the context in the corner. */
function blending(build) {
  const { sizes } = build;
  const weights = view(build, "weights", { width: sizes.cell, height: sizes.cell });
  const v = view(build, "v", { width: sizes.column, height: sizes.cell });
  const context = view(build, "context", { width: sizes.column, height: sizes.cell });
  if (sizes.narrow) {
    return h(
      "div",
      {},
      [weights, v, context].map((made) => block(build, made, sizes.cell)),
    );
  }
  return h(
    "div.ax-paper.ax-blend",
    { style: { columnGap: `${sizes.gap}px` } },
    cell("v-rows", rowLabels(build, sizes.cell)),
    cell("v", caption(build, "v", v), v.host),
    cell("rows", rowLabels(build, sizes.cell)),
    cell("weights", weights.host),
    cell("result", context.host),
    cell("columns", columnLabels(build, sizes.cell)),
    cell("foot-w", h("div.ax-foot", {}, caption(build, "weights", weights), legend(weights))),
    cell("foot", h("div.ax-foot", {}, caption(build, "context", context), legend(context))),
  );
}

/** A matrix by itself with its row labels. */
function block(build, made, height) {
  return h(
    "div.ax-block",
    {},
    h("div.ax-foot", { style: { paddingLeft: `${build.label}px` } }, caption(build, made.tensor, made), legend(made)),
    h("div.ax-labelled", {}, rowLabels(build, height), made.host),
  );
}

/** Ask and offer: x on the left, the two weight matrices on top where they are here, and q and k in the corners. */
function asking(build) {
  const { run, sizes, shape } = build;
  const x = view(build, "x", { width: sizes.x, height: sizes.cell });
  const q = view(build, "q", { width: sizes.out, height: sizes.cell });
  const k = view(build, "k", { width: sizes.out, height: sizes.cell });
  if (sizes.narrow) return h("div", {}, [x, q, k].map((made) => block(build, made, sizes.cell)));
  const top = ["W_query", "W_key"].map((name) => {
    if (!run.parameters[name]) return [];
    const made = view(build, name, { width: sizes.out, height: sizes.inner, transposed: true, still: true });
    return [caption(build, name, made, `${name}ᵀ`), made.host];
  });
  const under = (made) => h("div.ax-foot", {}, caption(build, made.tensor, made), legend(made));
  return h(
    "div.ax-paper.ax-asking",
    { style: { columnGap: `${sizes.gap}px` }, "data-tokens": shape.T },
    cell("wq", ...top[0]),
    cell("wk", ...top[1]),
    cell("rows", rowLabels(build, sizes.cell)),
    ...[x, q, k].flatMap((made) => [cell(made.tensor, made.host), cell(`foot-${made.tensor}`, under(made))]),
  );
}

/** What x was made from, and x: the order in which they stand below one another. */
function stackOf(run) {
  const { matrices } = run.lesson;
  const direct = matrices.x.operands;
  const names = new Set([...direct.flatMap((name) => matrices[name].operands), ...direct, "x"]);
  return [...names].filter((name) => name in run.tensors);
}

/** Embed: what x was made from, and x. */
function embedding(build) {
  const { run, sizes, shape } = build;
  const shown = stackOf(run);
  return h(
    "div.ax-stack",
    { "data-tokens": shape.T },
    shown.map((name, i) => {
      const made = view(build, name, { width: sizes.x, height: sizes.cell });
      const normed = name === "x" && run.lesson.matrices.x.rule === "norm";
      const sign = i === 0 ? "" : normed ? "→" : name === "x" || name === "r" ? "=" : "+";
      const mark = shown.length > 1 ? h("span.ax-sign", { "aria-hidden": "true" }, sign) : null;
      return h("div.ax-term", {}, mark, block(build, made, sizes.cell));
    }),
  );
}

function measurer(host) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `14px ${getComputedStyle(host).fontFamily}`;
  return (text) => context.measureText(text).width;
}
