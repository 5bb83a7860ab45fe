// The one line to the server: every event of every run, over one EventSource, without a gap. It
// runs in a SharedWorker where there is one, so that all tabs share a connection: a browser grants
// a server only six. What arrives twice is left to the reducers; here only nothing may be missed.

import { arrival, parseCursor } from "../model/cursor.ts";
import type { Arrived, Link, Told } from "../model/link.ts";
import { ApiError, address, get } from "./client.ts";
import type { Recorded, ServerView } from "./types.ts";

/** One drawing a tenth of a second is quicker than anybody reads. */
const FLUSH_MS = 100;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15_000;

export class Line {
  private readonly tell: (told: Told) => void;
  private source: EventSource | null = null;
  private retryMs = FIRST_RETRY_MS;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private buffer: Arrived[] = [];
  /** Where the stream goes on; null before the first answer of the server. */
  private last: string | null = null;
  private tries = 0;
  link: Link = { state: "connecting" };

  constructor(tell: (told: Told) => void) {
    this.tell = tell;
  }

  /** Connect, or connect anew from where it was. */
  open(): void {
    this.close();
    const attempt = ++this.tries;
    if (this.last !== null) this.listen(this.last);
    else {
      get<ServerView>(address(["server"])).then(
        ({ head = "" }) => {
          if (attempt !== this.tries) return;
          this.last = head;
          this.listen(head);
        },
        (error: unknown) => {
          if (attempt === this.tries) this.lost(error);
        },
      );
    }
  }

  /** Try again at once. */
  retry(): void {
    this.retryMs = FIRST_RETRY_MS;
    this.open();
  }

  pause(): void {
    this.close();
    this.tries++;
    this.become({ state: "paused" });
  }

  private listen(after: string): void {
    const source = new EventSource(address(["events"], { last_event_id: after }));
    this.source = source;
    source.onopen = () => {
      this.retryMs = FIRST_RETRY_MS;
      this.become({ state: "live" });
    };
    source.onmessage = (message: MessageEvent<string>) => {
      this.take(message.lastEventId, message.data);
    };
    source.addEventListener("reset", (message: MessageEvent<string>) => {
      this.flush();
      this.last = message.lastEventId || null;
      this.tell({ type: "reset" });
    });
    source.onerror = () => {
      this.close();
      // A stream cannot say why it does not open; an ordinary question is told.
      const attempt = ++this.tries;
      get(address(["server"])).then(
        () => {
          if (attempt === this.tries) this.lost(new Error("the live feed was cut"));
        },
        (error: unknown) => {
          if (attempt === this.tries) this.lost(error);
        },
      );
    };
  }

  private take(id: string, data: string): void {
    const place = parseCursor(id);
    const seen = this.last === null ? null : parseCursor(this.last);
    if (!place || !seen) return;
    const how = arrival(seen, place);
    if (how === "seen") return;
    this.last = id;
    if (how === "foreign") {
      this.flush();
      this.tell({ type: "reset" });
    }
    this.buffer.push({ id, event: JSON.parse(data) as Recorded });
    this.flushing ??= setTimeout(() => {
      this.flush();
    }, FLUSH_MS);
  }

  private flush(): void {
    clearTimeout(this.flushing);
    this.flushing = undefined;
    const events = this.buffer;
    this.buffer = [];
    if (events.length) this.tell({ type: "arrived", events });
  }

  private lost(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const denied = error instanceof ApiError && error.isRefusal;
    this.become({ state: "lost", retryMs: this.retryMs, reason, ...(denied && { denied }) });
    this.timer = setTimeout(() => {
      this.open();
    }, this.retryMs);
    this.retryMs = Math.min(2 * this.retryMs, LAST_RETRY_MS);
  }

  private close(): void {
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
    this.flush();
  }

  private become(link: Link): void {
    this.link = link;
    this.tell({ type: "link", link });
  }
}
