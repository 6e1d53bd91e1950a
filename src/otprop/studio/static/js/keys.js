/** Keys of the page. Letters and digits are classes, as the server assigned them; the rest are commands. */
import { dialogOpen } from "./dialogs.js";

/**
 * @typedef {Record<string, () => void>} Commands commands by key; letters with Shift as "Shift+L"
 */

const TYPING = "input:not([type=range]):not([type=radio]):not([type=checkbox]), textarea, select";
const ACTIVATED = "button, a, summary, [role=button], input, select";

/** @param {Commands} commands @param {(key: string) => boolean} chooseClass whether the key is a class */
export function listenToKeys(commands, chooseClass) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (dialogOpen() || event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "z" && !target.matches(TYPING)) {
      event.preventDefault();
      return (event.shiftKey ? commands["Shift+U"] : commands.u)();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches(TYPING)) {
      const leaves = event.key === "Escape" || (event.key === "Enter" && target.matches("select"));
      if (leaves) /** @type {HTMLElement} */ (target).blur();
      return;
    }
    if ((event.key === "Enter" || event.key === " ") && target.closest(ACTIVATED)) return;
    if (event.key.startsWith("Arrow") && target.matches("input, [tabindex]")) return;
    if (event.repeat && !event.key.startsWith("Arrow")) return event.preventDefault();
    const letter = event.key.length === 1 && event.key.toLowerCase() !== event.key.toUpperCase();
    const small = letter ? event.key.toLowerCase() : event.key; // whatever Caps Lock says
    const name = letter && event.shiftKey ? `Shift+${event.key.toUpperCase()}` : small;
    const command = commands[name];
    if (command) {
      event.preventDefault();
      command();
    } else if (chooseClass(name)) {
      event.preventDefault();
    }
  });
  // a click with the pointer leaves no focus behind, so that Enter means "accept" again
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target).closest("button, summary");
    if (event.detail > 0 && target && !dialogOpen()) /** @type {HTMLElement} */ (target).blur();
  });
}
