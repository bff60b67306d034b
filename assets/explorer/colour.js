// Number → colour. Signed numbers: blue, neutral, orange, centred on 0. Shares: neutral to navy on a fixed scale 0 to 1.
// Both scales stay readable for the colour-blind, and each has a twin for the dark theme.

const SCALES = {
  light: {
    signed: [[33, 102, 172], [146, 190, 222], [255, 255, 255], [247, 186, 130], [190, 84, 12]],
    unit: [[255, 255, 255], [166, 195, 224], [72, 124, 178], [20, 66, 120], [8, 40, 84]],
    ink: ["#16202c", "#ffffff"],
  },
  dark: {
    signed: [[110, 178, 240], [50, 98, 146], [27, 34, 46], [138, 76, 26], [245, 160, 88]],
    unit: [[27, 34, 46], [40, 74, 116], [66, 122, 184], [130, 184, 236], [214, 234, 255]],
    ink: ["#0d131c", "#eef3f9"],
  },
};
const STEPS = 256;

/** A theme's colours and type as the style sheet has them at `element`, read once: a palette and {css, font}. */
export function look(theme, element) {
  const style = getComputedStyle(element);
  const css = Object.fromEntries(["grid", "hidden", "hatch", "muted"].map((name) => [name, style.getPropertyValue(`--ax-${name}`)]));
  return { ...palette(theme), css, font: style.fontFamily };
}

/** palette("light" | "dark") → {signed, unit: Uint8 RGB tables of 256 entries, ink(table, index)}. */
export function palette(theme) {
  const { signed, unit, ink } = SCALES[theme];
  return { signed: table(signed), unit: table(unit), ink };
}

function table(stops) {
  const out = new Uint8ClampedArray(STEPS * 3);
  for (let i = 0; i < STEPS; i++) {
    const place = (i / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) out[i * 3 + c] = stops[low][c] + (stops[low + 1][c] - stops[low][c]) * (place - low);
  }
  return out;
}

/** The largest size among finite numbers: the limit of a signed scale. */
export function limitOf(values) {
  let limit = 0;
  for (const value of values) if (Number.isFinite(value) && Math.abs(value) > limit) limit = Math.abs(value);
  return limit;
}

/** Index into a table of 256: signed from −limit to limit, or unit from 0 to 1, by the third root where `small` shares count. */
export function shade(value, unit, limit, small = false) {
  const share = unit ? (small ? Math.cbrt(value) : value) : (value / (limit || 1) + 1) / 2;
  return Math.max(0, Math.min(STEPS - 1, Math.round(share * (STEPS - 1))));
}

/** Dark or light text, whichever contrasts more with a colour of the table. */
export function inkOn(table, index, [dark, light]) {
  const [r, g, b] = table.subarray(index * 3, index * 3 + 3);
  const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  return luminance > 0.18 ? dark : light;
}
