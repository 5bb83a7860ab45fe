// One run as the page knows it: a snapshot, and what came after it.

import type { Recorded, Snapshot } from "../api/types.ts";
import { type Cursor, arrival, parseCursor } from "./cursor.ts";
import { type Item, present } from "./items.ts";
import type { Arrived } from "./link.ts";
import { NEW_RUN, type RunView, fold } from "./run.ts";

export interface Feed {
  readonly cursor: Cursor;
  readonly run: RunView;
  readonly items: readonly Item[];
}

export function loaded({ head, events }: Snapshot): Feed {
  const { epoch, seq } = parseCursor(head) ?? { epoch: "", seq: 0 };
  const cursor = { epoch, seq: Math.max(seq, events.at(-1)?.seq ?? 0) };
  return taken({ cursor, run: NEW_RUN, items: [] }, events);
}

/** The feed after these events; what was seen already, or comes from another log, changes nothing. */
export function received(feed: Feed, arrived: readonly Arrived[]): Feed {
  let { cursor } = feed;
  const fresh: Recorded[] = [];
  for (const { id, event } of arrived) {
    const place = parseCursor(id);
    if (place && arrival(cursor, place) === "new") {
      cursor = place;
      fresh.push(event);
    }
  }
  return fresh.length ? { ...taken(feed, fresh), cursor } : feed;
}

function taken(feed: Feed, events: readonly Recorded[]): Feed {
  let { run } = feed;
  const items = [...feed.items];
  for (const event of events) {
    run = fold(run, event);
    const item = present(event, run.names);
    if (item) items.push(item);
  }
  return { ...feed, run, items };
}
