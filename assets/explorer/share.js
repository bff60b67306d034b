// The address of what is on screen: the request's query, the step, and the chosen cell.

/** run, step, cell {tensor, row, column} or null, and the tensor that the step shows as its result. */
export function addressQuery(run, step, cell, result) {
  const extra = new URLSearchParams({ step });
  if (cell) extra.set("cell", `${cell.row},${cell.column}`);
  if (cell && cell.tensor !== result) extra.set("tensor", cell.tensor);
  return `${run.query}&${extra}`;
}

/** The names in a query that are ours; all others belong to somebody else and stay. */
export function ownNames(run) {
  return new Set([...Object.keys(run.settings), "step", "cell", "tensor"]);
}

/** Copies an address and says so on the button; where the clipboard is closed, shows it to be copied by hand. */
export async function copyLink(part, address) {
  try {
    await navigator.clipboard.writeText(address);
    part.link.textContent = "Link copied";
  } catch {
    part.message.hidden = false;
    part.message.textContent = address;
  }
  setTimeout(() => (part.link.textContent = "Copy link"), 2000);
}
