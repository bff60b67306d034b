// Keeping a run and looking at it beside the next one: which of A, B and B − A is drawn, and the bar that switches.

import { comparable, difference, explainDifference, whatChanged } from "./compare.js";
import { h, keepFocus, once, put } from "./dom.js";

export class Comparison {
  /** onChange() is called when another of the three is to be drawn. */
  constructor(onChange) {
    Object.assign(this, { onChange, kept: null, mode: "B", run: null, gap: null });
  }

  /** Another run came: it is B from now on, and what is looked at, or its difference from A. */
  follow(run) {
    this.run = run;
    this.set(this.kept && this.mode === "D" && comparable(this.kept, run) ? "D" : "B");
  }

  set(mode) {
    this.mode = mode;
    this.gap = mode === "D" ? difference(this.kept, this.run) : null;
  }

  switch(mode, kept = this.kept) {
    this.kept = kept;
    this.set(mode);
    this.onChange();
  }

  /** The run to draw; where there is nothing to subtract, the one on screen. */
  drawn(subtracts) {
    if (this.mode === "A") return this.kept;
    return this.mode === "D" && subtracts ? this.gap : this.run;
  }

  /** A cell of B − A taken apart. */
  explain({ tensor, row, column }) {
    return explainDifference(this.kept, this.run, tensor, row, column);
  }

  /** Fills the bar, and the line that says what changed. */
  paint(bar, line) {
    const { kept, mode, run } = this;
    const able = Boolean(kept) && comparable(kept, run);
    once(bar, [Boolean(kept), able, mode], () => keepFocus(bar, () => put(bar, kept ? this.tabs(able) : this.keep())));
    line.textContent = kept ? whatChanged(kept, run) : "";
    line.hidden = !kept;
  }

  keep() {
    return h("button.ax-nav.ax-quiet", { type: "button", onclick: () => this.switch("B", this.run) }, "Keep to compare");
  }

  tabs(able) {
    const tab = (name, text) => {
      const state = { type: "button", "aria-pressed": String(this.mode === name), disabled: name === "D" && !able };
      return h("button.ax-tab", { ...state, onclick: () => this.switch(name) }, text);
    };
    return [
      h("span.ax-tabs", { role: "group", "aria-label": "compare" }, tab("A", "A"), tab("B", "B"), tab("D", "B − A")),
      h("button.ax-nav.ax-quiet", { type: "button", onclick: () => this.switch("B", null) }, "Forget A"),
    ];
  }
}
