// The arithmetic as a sheet: on a phone it lies over the foot of the page, closed to one line, and opens over the matrix.
// On a wide screen the style sheet makes it an ordinary part of the panel.

import { h } from "./dom.js";

const DRAG = 24; // pixels of a finger's way that open or close it
const MOVES = [["←", "left", [0, -1]], ["↑", "up", [-1, 0]], ["↓", "down", [1, 0]], ["→", "right", [0, 1]]];

/** Around `arithmetic`. onMove([rows, columns]) steps to a neighbouring cell. Returns {host, touched(bottom)}. */
export function sheet(arithmetic, onMove) {
  const grip = h("button.ax-grip", { type: "button", "aria-controls": arithmetic.id, "aria-label": "the selected cell taken apart" });
  const moves = MOVES.map(([sign, where, by]) => h("button.ax-move", { type: "button", "aria-label": `cell: ${where}`, onclick: () => onMove(by) }, sign));
  const host = h("div.ax-sheet", {}, grip, arithmetic, h("div.ax-moves", {}, moves));
  let wanted = true; // until somebody closes it, touching a cell opens it
  let from = null;

  function open(yes) {
    host.classList.toggle("ax-open", yes);
    grip.setAttribute("aria-expanded", String(yes));
  }
  function set(yes) {
    wanted = yes;
    open(yes);
  }
  open(false);
  grip.addEventListener("click", () => set(!host.classList.contains("ax-open")));
  arithmetic.addEventListener("click", () => open(true));
  arithmetic.addEventListener("focusin", () => open(true));
  grip.addEventListener("pointerdown", (event) => {
    from = event.clientY;
    grip.setPointerCapture(event.pointerId);
  });
  grip.addEventListener("pointermove", (event) => {
    if (from === null || Math.abs(event.clientY - from) < DRAG) return;
    set(event.clientY < from);
    from = null;
    grip.addEventListener("click", (click) => click.stopImmediatePropagation(), { capture: true, once: true });
  });
  grip.addEventListener("pointerup", () => (from = null));

  /** A cell was touched that ends at `bottom` in the window: open, and never over that cell. */
  function touched(bottom) {
    const over = getComputedStyle(host).position === "sticky";
    if (!over || !wanted) return;
    open(true);
    const hidden = bottom - host.getBoundingClientRect().top;
    if (hidden > 0) window.scrollBy({ top: hidden + 24 });
  }
  return { host, touched };
}
