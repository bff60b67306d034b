// All heads of a large model as small pictures of their weights, to choose one from.

import { h, put } from "./dom.js";
import { palette } from "./colour.js";
import { percent } from "./numbers.js";

const GAP = 4;

/** Paints into `host`; onChoose(layer, head) is called for a head. Hidden for models without an overview. */
export function overviewPart(host, run, theme, onChoose) {
  const seen = run.overview;
  host.hidden = !seen;
  if (!seen) {
    put(host);
    return;
  }
  const { layer: nowLayer, head: nowHead } = run.settings;
  const side = Math.max(20, Math.min(40, Math.floor((host.clientWidth - 60) / seen.heads) - GAP));
  const told = h("p.ax-small.ax-head-told", { role: "status" });
  const tell = (layer, head) => {
    const { kind, share } = seen.labels[layer][head];
    const { title, words } = seen.kinds[kind];
    told.textContent = `Layer ${layer}, head ${head}: ${title}, ${percent(share)}. ${words}`;
  };
  const rows = seen.labels.map((heads, layer) =>
    h(
      "div.ax-heads",
      { role: "group", "aria-label": `layer ${layer}` },
      h("span.ax-small", { "aria-hidden": "true" }, layer),
      heads.map(({ kind, share }, head) => {
        const here = layer === nowLayer && head === nowHead;
        const name = `layer ${layer}, head ${head}: ${seen.kinds[kind].title}, ${percent(share)}`;
        const button = h(
          "button.ax-head",
          {
            type: "button",
            "data-kind": kind,
            "aria-label": name,
            "aria-pressed": String(here),
            style: { width: `${side}px`, height: `${side}px` },
            onclick: () => onChoose(layer, head),
            onfocus: () => tell(layer, head),
            onpointerenter: () => tell(layer, head),
          },
          picture(seen, layer, head, theme),
        );
        button.addEventListener("keydown", (event) => step(event, button));
        return button;
      }),
    ),
  );
  const counts = Object.entries(seen.kinds).map(([kind, { title }]) => {
    const count = seen.labels.flat().filter((label) => label.kind === kind).length;
    return count ? h("span.ax-kind", { "data-kind": kind }, `${title} ${count}`) : null;
  });
  const open = host.firstChild?.open ?? true;
  put(
    host,
    h(
      "details",
      { open },
      h("summary", {}, `All ${seen.layers} × ${seen.heads} heads on this sentence`),
      h("div.ax-kinds", {}, counts),
      h("div.ax-all-heads", {}, rows),
      told,
      h("p.ax-small", {}, seen.note),
    ),
  );
  tell(nowLayer, nowHead);
}

/** The arrow keys go from head to head. */
function step(event, button) {
  const across = { ArrowLeft: button.previousElementSibling, ArrowRight: button.nextElementSibling }[event.key];
  const place = [...button.parentElement.children].indexOf(button);
  const row = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
  const to = row ? button.parentElement[row]?.children[place] : across;
  if (!to || !to.matches("button")) return;
  event.preventDefault();
  to.focus();
}

/** One head's weights, a pixel a number, stretched by the style. */
function picture({ pixels, size, heads }, layer, head, theme) {
  const table = palette(theme).unit;
  const image = new ImageData(size, size);
  const from = (layer * heads + head) * size * size;
  for (let i = 0; i < size * size; i++) {
    const shade = pixels[from + i] * 3;
    image.data.set([table[shade], table[shade + 1], table[shade + 2], 255], i * 4);
  }
  const canvas = h("canvas", { width: size, height: size, "aria-hidden": "true" });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
