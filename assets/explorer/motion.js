// The matrix that the lesson is about goes with the reader from step to step: its fills change in place, and at Blend it moves.

const FADE = { duration: 180, easing: "ease-out" };
const SLIDE = { duration: 300, easing: "ease-in-out" };

/** Where the T × T matrix is, to be told to `follow` once the next step is drawn. */
export function noted(views) {
  const view = queryByKey(views);
  return view && !matchMedia("(prefers-reduced-motion: reduce)").matches ? { view, box: view.host.getBoundingClientRect() } : null;
}

/** Lets the matrix of the step that is drawn now begin as what was `noted`. */
export function follow(before, views) {
  const view = queryByKey(views);
  if (!before || !view) return;
  const [from, to] = [before.box, view.host.getBoundingClientRect()];
  if (Math.abs(from.left - to.left) + Math.abs(from.top - to.top) + Math.abs(from.width - to.width) > 4) {
    const start = `translate(${from.left - to.left}px, ${from.top - to.top}px) scale(${from.width / to.width}, ${from.height / to.height})`;
    view.host.style.transformOrigin = "0 0";
    view.host.animate([{ transform: start }, { transform: "none" }], SLIDE);
    return;
  }
  const old = before.view.base;
  view.base.after(old);
  old.animate([{ opacity: 1 }, { opacity: 0 }], FADE).finished.then(() => old.remove(), () => old.remove());
}

function queryByKey(views) {
  return Object.values(views).find(({ tensor }) => ["scores", "scaled", "masked", "weights"].includes(tensor));
}
