/** Names of classes that differ so little that one of them may be a slip. */

const LEAST_LETTERS = 5; // of names that differ by a slip of the keys: shorter ones are often different words

/** @param {string} name */
function folded(name) {
  return name.trim().toLowerCase().replace(/[\s_-]+/g, " ");
}

/** Whether one letter is missing, too much, another one, or two are swapped; digits tell names apart. @param {string} a @param {string} b */
function oneSlip(a, b) {
  if (Math.min(a.length, b.length) < LEAST_LETTERS || Math.abs(a.length - b.length) > 1) return false;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  if (/\d/.test((a[at] ?? "") + (b[at] ?? ""))) return false;
  const rest = (/** @type {string} */ text, /** @type {number} */ from) => text.slice(at + from);
  return rest(a, 1) === rest(b, 1) || rest(a, 1) === rest(b, 0) || rest(a, 0) === rest(b, 1) ||
    (a[at] === b[at + 1] && a[at + 1] === b[at] && rest(a, 2) === rest(b, 2));
}

/**
 * The class whose name is nearly this one; null where there is none, or where the name itself is there.
 * @template {{name: string}} T
 * @param {string} name
 * @param {T[]} classes
 * @returns {T|null}
 */
export function alike(name, classes) {
  const own = folded(name);
  if (!own || classes.some((one) => one.name === name.trim())) return null;
  return classes.find((one) => folded(one.name) === own) ?? classes.find((one) => oneSlip(folded(one.name), own)) ?? null;
}
