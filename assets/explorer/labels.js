// The names along a matrix: as many as there is room for, and always the selected one.

import { h } from "./dom.js";
import { labelStride } from "./layout.js";

const LINE = 15; // pixels that a line of text needs

/** Names beside rows that are `height` apart → {axis, host, mark(index or null)} */
export function rowLabels(names, height, width) {
  const host = h("div.ax-row-labels", { style: { width: `${width}px`, height: `${names.length * height}px` } });
  return labels("row", host, names, height, LINE, (i) => ({ top: `${i * height}px`, height: `${height}px` }));
}

/** Names above or below columns that are `width` apart, upright where the longest fits. */
export function columnLabels(names, width, measure) {
  const longest = Math.max(...names.map(measure));
  const upright = longest + 2 <= width;
  const room = { height: `${upright ? 20 : Math.min(110, Math.ceil(longest) + 8)}px`, width: `${names.length * width}px` };
  const host = h(`div.ax-column-labels${upright ? "" : ".ax-slanted"}`, { style: room });
  return labels("column", host, names, width, upright ? 0 : LINE + 1, (i) => ({ left: `${i * width}px`, width: `${width}px` }));
}

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** How many pixels a name takes. */
export function textWidth(text, font) {
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths.clear();
    pen.font = `650 14px ${font}`; // as the selected one is written
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

function labels(axis, host, names, spacing, needed, place) {
  const stride = labelStride(spacing, needed);
  const label = (i) => h("span.ax-label", { style: place(i), title: names[i] }, h("span", { dir: "auto" }, names[i]));
  const shown = new Map();
  for (let i = 0; i < names.length; i += stride) shown.set(i, label(i));
  host.append(...shown.values());
  let extra = null;
  let changed = [];

  function mark(index) {
    extra?.remove();
    for (const span of changed) span.classList.remove("ax-on", "ax-away");
    [extra, changed] = [null, []];
    if (index === null) return;
    if (!shown.has(index)) host.append((extra = label(index)));
    const own = extra ?? shown.get(index);
    own.classList.add("ax-on");
    changed = [own];
    for (let near = index - (index % stride); stride > 1 && near <= index + stride; near += stride) {
      const neighbour = near === index ? null : shown.get(near);
      if (!neighbour || Math.abs(near - index) * spacing >= needed) continue;
      neighbour.classList.add("ax-away"); // the two would run into one another
      changed.push(neighbour);
    }
  }
  return { axis, host, mark };
}
