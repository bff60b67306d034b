// Numbers as they are printed, and when "=" may stand between them.
// A printed number is {text, value}: what is read, and exactly the number that a reader would compute with.

const MINUS = "\u2212";
const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** A number with `decimals` places; 0 for a true zero, a power of ten where the places would show nothing but zeros. */
export function print(number, decimals = 4) {
  if (number === -Infinity) return { text: `${MINUS}∞`, value: number, step: 0 };
  if (number === Infinity) return { text: "∞", value: number, step: 0 };
  if (number === 0) return { text: "0", value: 0, step: 0 };
  if (Math.abs(number) < 0.5 * 10 ** -decimals || Math.abs(number) >= 1e7) {
    const [mantissa, exponent] = number.toExponential(2).split("e");
    const power = String(Number(exponent)).replace(/./g, (c) => SUPERSCRIPT[c]);
    return {
      text: `${minus(mantissa)}×10${power}`,
      value: Number(`${mantissa}e${exponent}`),
      step: 10 ** (Number(exponent) - 2),
    };
  }
  const fixed = number.toFixed(decimals);
  return { text: minus(fixed), value: Number(fixed), step: 10 ** -decimals };
}

function minus(text) {
  return text.replace("-", MINUS);
}

/** "=" where `computed`, worked out from printed numbers, rounds to the printed `result`; else "≈". */
export function relation(computed, result) {
  if (computed === result.value) return "=";
  const slack = result.step / 2 + 1e-9 * Math.max(1, Math.abs(computed));
  return Math.abs(computed - result.value) <= slack ? "=" : "≈";
}

/** A printed number inside a sum or product: a negative one in brackets, unless it comes first. */
export function operand(printed, first = false) {
  return printed.value < 0 && !first ? `(${printed.text})` : printed.text;
}

/** A share for people: 96 %, never 0 % or 100 % where it is neither; a plain number where it is no share. */
export function percent(share) {
  if (share < 0 || share > 1.00001) return print(share, 2).text;
  if (share >= 0.995 && share < 1) return "> 99 %";
  if (share > 0 && share < 0.005) return "< 1 %";
  return `${Math.round(share * 100)} %`;
}

/** The smallest count of decimals, from `least` to `most`, at which the widest number still has `room` characters; null if none. */
export function fittingDecimals(values, room, least, most) {
  let longest = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    const whole = Math.max(1, Math.floor(Math.log10(Math.max(1, Math.abs(value)))) + 1);
    longest = Math.max(longest, whole + (value < 0 ? 1 : 0));
  }
  for (let decimals = most; decimals >= least; decimals--) if (longest + 1 + decimals <= room) return decimals;
  return null;
}

/** A number inside a cell: `decimals` places, a true zero as 0. */
export function cellText(number, decimals) {
  if (number === -Infinity) return `${MINUS}∞`;
  return number === 0 ? "0" : minus(number.toFixed(decimals));
}
