/** Requests to the page's own server. */

/** The server refused a request: its sentence, and its status. */
export class Refused extends Error {
  /** @param {number} status @param {string} sentence */
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** What went wrong, in words. @param {unknown} error */
export function sentenceOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {Response} response */
async function refusal(response) {
  let sentence = `The server answered with status ${response.status}.`;
  try {
    sentence = (await response.json()).error || sentence;
  } catch {
    // not JSON: the status is all there is to tell
  }
  return new Refused(response.status, sentence);
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(path, signal) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, signal });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/**
 * Binary data, or null while the server still computes it (202).
 * @param {string} path
 * @returns {Promise<{buffer: ArrayBuffer, revision: number}|null>}
 */
export async function getBinary(path) {
  const response = await fetch(path);
  if (!response.ok) throw await refusal(response);
  if (response.status === 202) {
    const { state, error } = await response.json();
    if (state === "failed") throw new Refused(202, error);
    return null;
  }
  return { buffer: await response.arrayBuffer(), revision: Number(response.headers.get("X-Revision") ?? 0) };
}

/**
 * A change of state. `request` names it, so that the server knows a repeated one.
 * @param {string} path
 * @param {object} body
 * @param {string} request
 * @returns {Promise<any>}
 */
export async function post(path, body, request) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Otprop-Studio": "1", "X-Otprop-Request": request },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** A new name for a request: 32 hexadecimal digits. */
export function requestName() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
