// A drawn matrix: a canvas for its fills, digits and glyphs, frames for what is lit, and a focusable host around both.

import { h } from "./dom.js";
import { inkOn, limitOf, shade } from "./colour.js";
import { hit } from "./layout.js";
import { cellText, fittingDecimals } from "./numbers.js";

const LEAST_TYPE = 13; // pixels: nothing smaller is written
const DIGIT = 0.56; // width of a tabular digit, of the type's size

export class MatrixView {
  /**
   * options: tensor (name), matrix, unit, small (of shares, the small ones count), hue (name of a colour), width and height of a cell, transposed (draw rows as columns), label (accessible
   * name), still (a picture only), hidden(row, column) → "future" | "padding" | null, digits: the most decimals, null for none,
   * onPoint(row, column, kind) with kind "over", "pin" or "out", onKey(move).
   */
  constructor(options) {
    Object.assign(this, { hidden: () => null, digits: 2, ...options });
    const { matrix, transposed } = this;
    this.limit = limitOf(matrix.data);
    this.across = transposed ? matrix.rows : matrix.columns;
    this.down = transposed ? matrix.columns : matrix.rows;
    this.size = { width: this.across * this.width, height: this.down * this.height };
    const room = { width: `${this.size.width}px`, height: `${this.size.height}px` };
    this.base = h("canvas", { style: room, "aria-hidden": "true" });
    this.frames = Object.fromEntries(["row", "column", "cell"].map((part) => [part, h(`i.ax-lit.ax-lit-${part}`, { "aria-hidden": "true", hidden: true })]));
    this.host = h(
      "div.ax-matrix",
      this.still
        ? { style: room, role: "img", "aria-label": this.label }
        : {
            "data-matrix": this.tensor,
            tabindex: 0,
            role: "application",
            "aria-roledescription": "matrix",
            "aria-label": this.label,
            style: room,
          },
      this.base,
      Object.values(this.frames),
    );
    this.host.style.setProperty("--hue", `var(${this.hue})`);
    if (!this.still) this.listen();
  }

  listen() {
    const cell = (event) => {
      const box = this.host.getBoundingClientRect();
      const found = hit(event.clientX - box.left, event.clientY - box.top, {
        rows: this.down,
        columns: this.across,
        width: this.width,
        height: this.height,
      });
      return found && this.transposed ? { row: found.column, column: found.row } : found;
    };
    const tell = (kind) => (event) => {
      const at = cell(event);
      if (at) this.onPoint(at.row, at.column, kind);
    };
    this.host.addEventListener("pointermove", (event) => event.pointerType === "mouse" && tell("over")(event));
    this.host.addEventListener("pointerleave", () => this.onPoint(0, 0, "out"));
    this.host.addEventListener("pointerdown", () => (this.pointed = true));
    this.host.addEventListener("click", tell("pin"));
    this.host.addEventListener("focus", () => {
      if (!this.pointed) this.onKey("here");
      this.pointed = false;
    });
    this.host.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? event.key;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (!Array.isArray(move) && !["Home", "End"].includes(move)) return;
      event.preventDefault();
      this.onKey(Array.isArray(move) && this.transposed ? [move[1], move[0]] : move);
    });
  }

  /** The focus as after a repaint: the selection stays where it was. */
  takeFocus() {
    this.pointed = true;
    this.host.focus({ preventScroll: true });
  }

  /** Fills, then glyphs, then digits, with a look of colour.js. */
  draw({ unit, signed, ink, css: style, font: family }) {
    const table = this.unit ? unit : signed;
    const ratio = this.across * this.down > 40000 ? 1 : Math.min(window.devicePixelRatio || 1, 2);
    this.base.width = Math.round(this.size.width * ratio);
    this.base.height = Math.round(this.size.height * ratio);
    const context = this.base.getContext("2d");
    context.scale(ratio, ratio);
    const reasons = this.reasons();
    this.fills(context, table, reasons, style.hidden);
    if (this.width >= 5 && this.height >= 5) this.glyphs(context, reasons, style.hatch);
    const { font, decimals } = this.digitsThatFit();
    if (decimals !== null) this.digitsIn(context, table, ink, style, `${font}px ${family}`, decimals);
    if (this.width >= 8 && this.height >= 8) this.grid(context, style);
  }

  /** Row by row as drawn: 1 where a cell is hidden as future, 2 as padding, else 0. */
  reasons() {
    const found = new Uint8Array(this.across * this.down);
    for (let y = 0, i = 0; y < this.down; y++) {
      for (let x = 0; x < this.across; x++, i++) {
        const why = this.transposed ? this.hidden(x, y) : this.hidden(y, x);
        if (why) found[i] = why === "future" ? 1 : 2;
      }
    }
    return found;
  }

  digitsIn(context, table, ink, style, font, decimals) {
    Object.assign(context, { textAlign: "center", textBaseline: "middle", font });
    for (let y = 0; y < this.down; y++) {
      for (let x = 0; x < this.across; x++) {
        const [row, column] = this.transposed ? [x, y] : [y, x];
        const value = this.matrix.at(row, column);
        const [across, down] = [(x + 0.5) * this.width, (y + 0.5) * this.height + 0.5];
        if (this.hidden(row, column)) {
          const half = context.measureText(cellText(value, 0)).width / 2 + 3;
          context.fillStyle = style.hidden;
          context.fillRect(across - half, down - 8.5, half * 2, 16);
          context.fillStyle = style.muted;
          context.fillText(cellText(value, 0), across, down);
        } else {
          context.fillStyle = inkOn(table, shade(value, this.unit, this.limit, this.small), ink);
          context.globalAlpha = value !== 0 && Number(value.toFixed(decimals)) === 0 ? 0.5 : 1; // there, but next to nothing
          context.fillText(cellText(value, decimals), across, down);
          context.globalAlpha = 1;
        }
      }
    }
  }

  /** The most decimals, in the largest type, that every number of the matrix has room for; null decimals where none has. */
  digitsThatFit() {
    if (this.digits === null || this.height < LEAST_TYPE + 5) return { font: LEAST_TYPE, decimals: null };
    const least = 1;
    for (let most = this.digits; most >= least; most--) {
      for (let font = Math.min(15, this.height - 5); font >= LEAST_TYPE; font--) {
        const room = Math.floor((this.width - 3) / (font * DIGIT));
        if (fittingDecimals(this.matrix.data, room, most, most) !== null) return { font, decimals: most };
      }
    }
    return { font: LEAST_TYPE, decimals: null };
  }

  fills(context, table, reasons, hiddenColour) {
    const blank = [1, 3, 5].map((at) => parseInt(hiddenColour.trim().slice(at, at + 2), 16)); // #rrggbb
    const image = new ImageData(this.across, this.down);
    for (let y = 0; y < this.down; y++) {
      for (let x = 0; x < this.across; x++) {
        const value = this.transposed ? this.matrix.at(x, y) : this.matrix.at(y, x);
        const from = shade(Number.isFinite(value) ? value : 0, this.unit, this.limit, this.small) * 3;
        const at = y * this.across + x;
        const to = at * 4;
        for (let c = 0; c < 3; c++) image.data[to + c] = reasons[at] ? blank[c] : table[from + c];
        image.data[to + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(this.across, this.down);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, this.size.width, this.size.height);
  }

  grid(context, style) {
    context.strokeStyle = style.grid;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = 1; x < this.across; x++) line(context, x * this.width, 0, x * this.width, this.size.height);
    for (let y = 1; y < this.down; y++) line(context, 0, y * this.height, this.size.width, y * this.height);
    context.stroke();
  }

  /** The future hatched, padding dotted: all cells of a kind in one fill. */
  glyphs(context, reasons, colour) {
    for (const kind of [1, 2]) {
      const path = new Path2D();
      let any = false;
      for (let i = 0; i < reasons.length; i++) {
        if (reasons[i] !== kind) continue;
        path.rect((i % this.across) * this.width, Math.floor(i / this.across) * this.height, this.width, this.height);
        any = true;
      }
      if (!any) continue;
      context.fillStyle = context.createPattern(glyph(kind, colour), "repeat");
      context.fill(path);
    }
  }

  /** Light up: a whole row, a whole column, one cell; any may be null. */
  light({ row = null, column = null, cell = null }) {
    if (cell) this.host.dataset.cell = cell.join();
    if (this.transposed) [row, column, cell] = [column, row, cell && [cell[1], cell[0]]];
    const [w, t] = [this.width, this.height];
    const thin = Math.min(2, t / 3);
    frame(this.frames.row, row !== null && [0, row * t, this.size.width, t], thin);
    frame(this.frames.column, column !== null && [column * w, 0, w, this.size.height], Math.min(thin, w / 2));
    frame(this.frames.cell, cell && [cell[1] * w, cell[0] * t, Math.max(3, w), Math.max(3, t)], 3);
  }
}

/** Puts a frame around [left, top, width, height]; hides it where there is no such place. */
function frame(element, place, thick) {
  element.hidden = !place;
  if (!place) return;
  const [left, top, width, height] = place.map((pixels) => `${pixels}px`);
  Object.assign(element.style, { left, top, width, height, borderWidth: `${thick}px` });
}

/** A tile of 8 × 8: 1 = hatching, 2 = dots. */
function glyph(kind, colour) {
  const tile = new OffscreenCanvas(8, 8);
  const context = tile.getContext("2d");
  context.fillStyle = context.strokeStyle = colour;
  if (kind === 2) context.fillRect(3, 3, 2, 2);
  else {
    for (const shift of [-8, 0, 8]) {
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
    }
    context.stroke();
  }
  return tile;
}

function line(context, x0, y0, x1, y1) {
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
}
