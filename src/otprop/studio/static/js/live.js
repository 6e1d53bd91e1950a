/** Events of the server: its state, and new labels. The connection is made anew whenever it breaks. */
import { Refused, getJson } from "./api.js";

const RETRY = 1000; // milliseconds

export class Live {
  /**
   * @param {{state: (state: import("./types.js").State) => void, result: () => void, up: () => void,
   *   down: (sentence: string) => void}} on
   */
  constructor(on) {
    this.on = on;
    this.connected = false;
    /** @type {EventSource|null} */
    this.source = null;
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => event.persisted && this.open());
  }

  open() {
    this.source?.close();
    const source = new EventSource("/api/events");
    this.source = source;
    source.addEventListener("open", () => {
      this.connected = true;
      this.on.up();
    });
    source.addEventListener("state", (event) => this.on.state(JSON.parse(event.data)));
    source.addEventListener("result", () => this.on.result());
    source.addEventListener("error", () => {
      source.close();
      if (source === this.source) void this.lost();
    });
  }

  /** Find out why there is no connection, and try again. */
  async lost() {
    this.connected = false;
    let sentence = "";
    try {
      await getJson("/api/state");
    } catch (error) {
      sentence = error instanceof Refused && error.status < 500 ? "locked" : "gone";
    }
    if (sentence) this.on.down(sentence);
    setTimeout(() => this.open(), sentence ? RETRY : 100);
  }
}
