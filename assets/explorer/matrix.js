// A drawn matrix: a canvas for its fills, digits and glyphs, a second one for what is lit, and a focusable host around both.

import { h } from "./dom.js";
import { inkOn, limitOf, shade } from "./colour.js";
import { hit } from "./layout.js";
import { cellText, fittingDecimals } from "./numbers.js";

const LEAST_TYPE = 13; // pixels: nothing smaller is written
const DIGIT = 0.56; // width of a tabular digit, of the type's size

export class MatrixView {
  /**
   * options: tensor (name), matrix, unit, width and height of a cell, transposed (draw rows as columns), label (accessible
   * name), still (a picture only), hidden(row, column) → "future" | "padding" | null, digits: the fewest decimals wanted,
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
    this.lit = h("canvas.ax-lit", { style: room, "aria-hidden": "true" });
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
      this.lit,
    );
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

  canvas(element) {
    const ratio = this.across * this.down > 40000 ? 1 : Math.min(window.devicePixelRatio || 1, 2);
    element.width = Math.round(this.size.width * ratio);
    element.height = Math.round(this.size.height * ratio);
    const context = element.getContext("2d");
    context.scale(ratio, ratio);
    return context;
  }

  /** Fills, then glyphs, then digits. `colours` is a palette. */
  draw(colours) {
    const table = this.unit ? colours.unit : colours.signed;
    const context = this.canvas(this.base);
    this.fills(context, table);
    const { font, decimals } = this.digitsThatFit();
    this.decimals = decimals;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${font}px ${getComputedStyle(this.host).fontFamily || "sans-serif"}`;
    for (let y = 0; y < this.down; y++) {
      for (let x = 0; x < this.across; x++) {
        context.globalAlpha = 1;
        const [row, column] = this.transposed ? [x, y] : [y, x];
        const value = this.matrix.at(row, column);
        const why = this.hidden(row, column);
        if (why) this.glyph(context, x, y, why, colours, value, decimals !== null);
        else if (decimals !== null) {
          context.fillStyle = inkOn(table, shade(value, this.unit, this.limit), colours.ink);
          context.globalAlpha = value !== 0 && Number(value.toFixed(decimals)) === 0 ? 0.5 : 1; // there, but next to nothing
          context.fillText(cellText(value, decimals), (x + 0.5) * this.width, (y + 0.5) * this.height + 0.5);
        }
      }
    }
  }

  /** The most decimals, in the largest type, that every number of the matrix has room for; null decimals where none has. */
  digitsThatFit() {
    if (this.height < LEAST_TYPE + 5) return { font: LEAST_TYPE, decimals: null };
    const least = Math.min(this.digits, 2);
    for (let most = this.digits; most >= least; most--) {
      for (let font = Math.min(15, this.height - 5); font >= LEAST_TYPE; font--) {
        const room = Math.floor((this.width - 3) / (font * DIGIT));
        if (fittingDecimals(this.matrix.data, room, most, most) !== null) return { font, decimals: most };
      }
    }
    return { font: LEAST_TYPE, decimals: null };
  }

  fills(context, table) {
    const image = new ImageData(this.across, this.down);
    for (let y = 0; y < this.down; y++) {
      for (let x = 0; x < this.across; x++) {
        const value = this.transposed ? this.matrix.at(x, y) : this.matrix.at(y, x);
        const from = shade(Number.isFinite(value) ? value : 0, this.unit, this.limit) * 3;
        const to = (y * this.across + x) * 4;
        image.data[to] = table[from];
        image.data[to + 1] = table[from + 1];
        image.data[to + 2] = table[from + 2];
        image.data[to + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(this.across, this.down);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, this.size.width, this.size.height);
    if (this.width < 8 || this.height < 8) return;
    context.strokeStyle = getComputedStyle(this.host).getPropertyValue("--ax-grid");
    context.lineWidth = 1;
    context.beginPath();
    for (let x = 1; x < this.across; x++) line(context, x * this.width, 0, x * this.width, this.size.height);
    for (let y = 1; y < this.down; y++) line(context, 0, y * this.height, this.size.width, y * this.height);
    context.stroke();
  }

  /** The future: hatched. Padding: dotted. With −∞ where the number is that. */
  glyph(context, x, y, why, colours, value, digits) {
    const [left, top, w, hgt] = [x * this.width, y * this.height, this.width, this.height];
    const style = getComputedStyle(this.host);
    context.save();
    context.beginPath();
    context.rect(left, top, w, hgt);
    context.clip();
    context.fillStyle = style.getPropertyValue("--ax-hidden");
    context.fillRect(left, top, w, hgt);
    context.strokeStyle = context.fillStyle = style.getPropertyValue("--ax-hatch");
    if (why === "future" && w >= 5) {
      context.beginPath();
      const gap = Math.max(5, Math.min(8, w / 4));
      for (let s = -hgt; s < w; s += gap) line(context, left + s, top + hgt, left + s + hgt, top);
      context.stroke();
    } else if (why === "padding" && w >= 5) {
      for (let dx = 4; dx < w; dx += 7) for (let dy = 4; dy < hgt; dy += 7) context.fillRect(left + dx, top + dy, 1.6, 1.6);
    }
    if (digits && (value === -Infinity || value === 0)) {
      const text = cellText(value, 0);
      const half = context.measureText(text).width / 2 + 3;
      context.fillStyle = style.getPropertyValue("--ax-hidden");
      context.fillRect(left + w / 2 - half, top + hgt / 2 - 8, half * 2, 16);
      context.fillStyle = style.getPropertyValue("--ax-muted");
      context.fillText(text, left + w / 2, top + hgt / 2 + 0.5);
    }
    context.restore();
  }

  /** Light up: a whole row, a whole column, one cell; any may be null. `hue` is a CSS colour. */
  light({ row = null, column = null, cell = null, hue }) {
    const context = this.canvas(this.lit);
    if (this.transposed) [row, column, cell] = [column, row, cell && [cell[1], cell[0]]];
    context.strokeStyle = hue;
    const frame = (x, y, w, hgt, thick) => {
      context.lineWidth = thick;
      context.strokeRect(x + thick / 2, y + thick / 2, Math.max(1, w - thick), Math.max(1, hgt - thick));
    };
    const thin = Math.min(2, this.height / 3);
    if (row !== null) frame(0, row * this.height, this.size.width, this.height, thin);
    if (column !== null) frame(column * this.width, 0, this.width, this.size.height, Math.min(2, thin, this.width / 2));
    if (cell) {
      const [w, hgt] = [Math.max(3, this.width), Math.max(3, this.height)];
      context.strokeStyle = getComputedStyle(this.host).getPropertyValue("--ax-cell");
      frame(cell[1] * this.width, cell[0] * this.height, w, hgt, 3);
    }
  }
}

function line(context, x0, y0, x1, y1) {
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
}
