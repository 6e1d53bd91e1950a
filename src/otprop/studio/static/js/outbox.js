/**
 * Changes on their way to the server: sent one by one in the order they were made, repeated until the server has
 * confirmed them, and kept in the browser's storage meanwhile, so that a page that is closed or reloaded loses nothing.
 */
import { Refused, post, requestName } from "./api.js";

const PREFIX = "otprop-studio";
const FIRST_WAIT = 400, LONGEST_WAIT = 5000; // milliseconds between attempts

/**
 * @typedef {{path: string, body: any, request: string}} Entry
 * @typedef {{resolve: (answer: any) => void, reject: (error: Error) => void, done: Promise<any>}} Waiter
 * @typedef {"idle"|"sending"|"gone"|"failing"|"locked"} Condition
 */

/** A promise with the functions that end it. */
function withResolvers() {
  /** @type {any} */
  const found = {};
  found.promise = new Promise((resolve, reject) => Object.assign(found, { resolve, reject }));
  return found;
}

export class Outbox {
  /** @param {(condition: Condition, waiting: number, sentence: string) => void} report */
  constructor(report) {
    this.report = report;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Map<string, Waiter>} */
    this.waiters = new Map();
    /** @type {string|null} */
    this.key = null;
    this.busy = false;
    this.wait = FIRST_WAIT;
    this.timer = 0;
    /** @type {(entry: Entry, answer: any) => void} */
    this.onAdopted = () => {};
  }

  /**
   * Keep unconfirmed changes under the name of the session, and take over those that a closed page left there.
   * @param {string} session
   */
  async open(session) {
    const tab = requestName();
    this.key = `${PREFIX}:${session}:${tab}`;
    // the lock is held as long as this page lives: a key whose lock is free belongs to a page that is gone
    void navigator.locks?.request(this.key, () => new Promise(() => {}));
    if (!navigator.locks) return;
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(`${PREFIX}:${session}:`) && key !== this.key);
    for (const key of keys) {
      await navigator.locks.request(key, { ifAvailable: true }, (lock) => {
        if (!lock) return;
        this.entries.push(...JSON.parse(localStorage.getItem(key) ?? "[]"));
        this.store();
        localStorage.removeItem(key);
      });
    }
    if (this.entries.length) this.flush();
  }

  /** Changes that are not confirmed yet. */
  get waiting() {
    return this.entries.length;
  }

  /**
   * Send a change after all earlier ones; the promise ends with the server's answer.
   * @param {string} path
   * @param {object} body
   * @returns {Promise<any>}
   */
  send(path, body) {
    const entry = { path, body, request: requestName() };
    this.entries.push(entry);
    this.store();
    const { promise, resolve, reject } = withResolvers();
    this.waiters.set(entry.request, { resolve, reject, done: promise });
    void this.flush();
    return promise;
  }

  /** Wait until everything that was sent so far is confirmed. */
  async drained() {
    await Promise.allSettled([...this.waiters.values()].map(({ done }) => done));
  }

  /** Try again now: the server was heard from. */
  retry() {
    clearTimeout(this.timer);
    this.wait = FIRST_WAIT;
    void this.flush();
  }

  store() {
    if (!this.key) return;
    try {
      if (this.entries.length) localStorage.setItem(this.key, JSON.stringify(this.entries));
      else localStorage.removeItem(this.key);
    } catch {
      localStorage.removeItem(this.key); // too large for it: the entries stay in memory
    }
  }

  async flush() {
    if (this.busy) return;
    this.busy = true;
    clearTimeout(this.timer);
    while (this.entries.length) {
      this.report("sending", this.entries.length, "");
      const entry = this.entries[0];
      try {
        const answer = await post(entry.path, entry.body, entry.request);
        this.wait = FIRST_WAIT;
        this.settle(entry, (waiter) => waiter.resolve(answer), answer);
      } catch (error) {
        if (!(error instanceof Refused) || error.status >= 500 || error.status === 401 || error.status === 403) {
          this.busy = false;
          this.later(error);
          return;
        }
        this.settle(entry, (waiter) => waiter.reject(error), null);
      }
    }
    this.busy = false;
    this.report("idle", 0, "");
  }

  /**
   * @param {Entry} entry
   * @param {(waiter: Waiter) => void} tell
   * @param {any} answer
   */
  settle(entry, tell, answer) {
    this.entries.shift();
    this.store();
    const waiter = this.waiters.get(entry.request);
    this.waiters.delete(entry.request);
    if (waiter) tell(waiter);
    else this.onAdopted(entry, answer);
  }

  /** @param {unknown} error */
  later(error) {
    const refused = error instanceof Refused ? error : null;
    const condition = !refused ? "gone" : refused.status >= 500 ? "failing" : "locked";
    this.report(condition, this.entries.length, refused ? refused.message : "");
    this.timer = setTimeout(() => this.flush(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
  }
}
