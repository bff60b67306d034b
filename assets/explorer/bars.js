// Numbers as bars: one path for them all, for a page of a thousand elements is slow. Pure.

/** SVG path: bars `width` apart that stand on `base`, as high as the numbers say, downwards where they are negative. */
export function bars(heights, width, base) {
  const edge = width * 0.1;
  return heights
    .map((height, i) => (height ? `M${(i * width + edge).toFixed(2)} ${base}v${(-height).toFixed(2)}h${(width - 2 * edge).toFixed(2)}v${height.toFixed(2)}z` : ""))
    .join("");
}
