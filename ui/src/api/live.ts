// Follows one run: a snapshot, then the stream after it, over and over until it is stopped. What
// arrives twice is left to the reducer; here only nothing may be missed.

import type { Arrived, Link } from "../model/page.ts";
import { arrival, parseCursor } from "../model/cursor.ts";
import { fetchSnapshot, streamAddress } from "./client.ts";
import type { Recorded, Snapshot } from "./types.ts";

export interface Listener {
  snapshot(snapshot: Snapshot): void;
  arrived(events: readonly Arrived[]): void;
  link(link: Link): void;
}

export interface Following {
  retry(): void;
  stop(): void;
}

/** One drawing a tenth of a second is quicker than anybody reads. */
const FLUSH_MS = 100;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 15_000;

export function follow(runId: string, told: Listener): Following {
  const leaving = new AbortController();
  let source: EventSource | null = null;
  let retryMs = FIRST_RETRY_MS;
  let timer = 0;
  let flushing = 0;
  let buffer: Arrived[] = [];
  // Where the stream goes on; without one there is no snapshot yet, or it is of another log.
  let last: string | null = null;

  function flush(): void {
    flushing = 0;
    const events = buffer;
    buffer = [];
    if (events.length) told.arrived(events);
  }

  function close(): void {
    source?.close();
    source = null;
    clearTimeout(timer);
    clearTimeout(flushing);
    flush();
  }

  function lost(reason: string): void {
    close();
    told.link({ state: "lost", retryMs, reason });
    timer = window.setTimeout(open, retryMs);
    retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
  }

  function open(): void {
    close();
    if (document.visibilityState === "hidden") {
      // A browser grants a server six connections; pages nobody looks at must not use them up.
      told.link({ state: "paused" });
    } else if (last === null) {
      void load();
    } else {
      listen(last);
    }
  }

  async function load(): Promise<void> {
    try {
      const snapshot = await fetchSnapshot(runId, leaving.signal);
      last = snapshot.head;
      told.snapshot(snapshot);
      open();
    } catch (error) {
      if (!leaving.signal.aborted) lost(error instanceof Error ? error.message : String(error));
    }
  }

  function listen(after: string): void {
    source = new EventSource(streamAddress(runId, after));
    source.onopen = () => {
      retryMs = FIRST_RETRY_MS;
      told.link({ state: "live" });
    };
    source.onmessage = (message: MessageEvent<string>) => {
      const place = parseCursor(message.lastEventId);
      const seen = last === null ? null : parseCursor(last);
      if (!place || !seen) return;
      const how = arrival(seen, place);
      if (how === "foreign") startOver();
      if (how !== "new") return;
      last = message.lastEventId;
      buffer.push({ id: last, event: JSON.parse(message.data) as Recorded });
      flushing ||= window.setTimeout(flush, FLUSH_MS);
    };
    source.addEventListener("reset", startOver);
    source.onerror = () => {
      lost("the live feed was cut");
    };
  }

  function startOver(): void {
    last = null;
    open();
  }

  function looked(): void {
    if (document.visibilityState === "hidden" || source === null) open();
  }

  function retry(): void {
    retryMs = FIRST_RETRY_MS;
    open();
  }

  document.addEventListener("visibilitychange", looked);
  told.link({ state: "connecting" });
  open();
  return {
    retry,
    stop() {
      document.removeEventListener("visibilitychange", looked);
      leaving.abort();
      close();
    },
  };
}
