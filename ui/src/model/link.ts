// What is between the page and the server, and what comes over it.

import type { Recorded } from "../api/types.ts";

export type Link =
  | { readonly state: "connecting" | "live" | "paused" }
  | { readonly state: "lost"; readonly retryMs: number; readonly reason: string; readonly denied?: boolean };

export interface Arrived {
  /** Its place in the feed, `<epoch>-<seq>`. */
  readonly id: string;
  readonly event: Recorded;
}

/** From the line to whoever listens. `welcome` is the first: nothing that comes later is missed. */
export type Told =
  | { readonly type: "welcome"; readonly link: Link }
  | { readonly type: "link"; readonly link: Link }
  | { readonly type: "arrived"; readonly events: readonly Arrived[] }
  | { readonly type: "reset" };

export type Wish = "retry" | "bye";
