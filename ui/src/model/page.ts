// Everything the page knows, and what each piece of news makes of it.

import type { Recorded, RunSummary, Snapshot } from "../api/types.ts";
import { type Cursor, arrival, parseCursor } from "./cursor.ts";
import { type Item, present } from "./items.ts";
import { NEW_RUN, type RunView, fold, isOver } from "./run.ts";

export type Link =
  | { readonly state: "connecting" | "live" | "paused" }
  | { readonly state: "lost"; readonly retryMs: number; readonly reason: string };

export interface Feed {
  readonly cursor: Cursor;
  readonly run: RunView;
  readonly items: readonly Item[];
  /** Items before this one are kept but not drawn. */
  readonly from: number;
}

export interface Page {
  readonly workspace: string;
  readonly runs: readonly RunSummary[] | null;
  readonly runId: string | null;
  /** A run somebody asked for stays; otherwise the page goes to what goes on. */
  readonly pinned: boolean;
  readonly feed: Feed | null;
  readonly link: Link;
}

export interface Arrived {
  readonly id: string;
  readonly event: Recorded;
}

export type News =
  | { readonly type: "runs"; readonly runs: readonly RunSummary[] }
  | { readonly type: "workspace"; readonly name: string }
  | { readonly type: "chosen"; readonly runId: string }
  | { readonly type: "snapshot"; readonly runId: string; readonly snapshot: Snapshot }
  | { readonly type: "arrived"; readonly runId: string; readonly events: readonly Arrived[] }
  | { readonly type: "link"; readonly link: Link }
  | { readonly type: "listLost"; readonly reason: string; readonly retryMs: number }
  | { readonly type: "earlier" }
  | { readonly type: "trim" };

/** Drawn at first, and added by each wish for earlier ones: enough to read, quick to draw. */
export const PAGE_LENGTH = 300;
const MOST_DRAWN = 2 * PAGE_LENGTH;

export function emptyPage(runId: string | null): Page {
  const link = { state: "connecting" } as const;
  return { workspace: "", runs: null, runId, pinned: runId !== null, feed: null, link };
}

export function reduce(page: Page, news: News): Page {
  switch (news.type) {
    case "runs":
      return withRuns(page, news.runs);
    case "workspace":
      return { ...page, workspace: news.name };
    case "listLost":
      return { ...page, link: lostLink(page, news.reason, news.retryMs) };
    case "chosen":
      return { ...page, pinned: true, runId: news.runId, feed: news.runId === page.runId ? page.feed : null };
    case "snapshot":
      return news.runId === page.runId ? { ...page, feed: loaded(news.snapshot) } : page;
    case "arrived":
      return news.runId === page.runId && page.feed ? { ...page, feed: received(page.feed, news.events) } : page;
    case "link":
      return { ...page, link: news.link };
    case "earlier":
      return drawnFrom(page, (feed) => Math.max(0, feed.from - PAGE_LENGTH));
    case "trim":
      return drawnFrom(page, (feed) => Math.max(0, feed.items.length - PAGE_LENGTH));
  }
}

function lostLink({ runId, link }: Page, reason: string, retryMs: number): Link {
  // A stream cannot say why it does not open; an ordinary question is told.
  if (link.state === "lost") return { ...link, reason };
  // Once a run is followed, its own feed says whether the server is there.
  return runId === null ? { state: "lost", reason, retryMs } : link;
}

function withRuns(page: Page, runs: readonly RunSummary[]): Page {
  const current = runs.find((run) => run.runId === page.runId);
  const going = runs.find((run) => !isOver(run.status));
  if (current && (page.pinned || !isOver(current.status) || !going)) return { ...page, runs };
  const next = going ?? runs[0];
  if (!next) return { ...page, runs, runId: null, feed: null, link: { state: "live" } };
  return { ...page, runs, runId: next.runId, pinned: false, feed: null };
}

function drawnFrom(page: Page, start: (feed: Feed) => number): Page {
  return page.feed ? { ...page, feed: { ...page.feed, from: start(page.feed) } } : page;
}

function loaded({ head, events }: Snapshot): Feed {
  const { epoch, seq } = parseCursor(head) ?? { epoch: "", seq: 0 };
  const cursor = { epoch, seq: Math.max(seq, events.at(-1)?.seq ?? 0) };
  const feed = taken({ cursor, run: NEW_RUN, items: [], from: 0 }, events);
  return { ...feed, from: Math.max(0, feed.items.length - PAGE_LENGTH) };
}

/** The feed after these events; what was seen already, or comes from another log, changes nothing. */
function received(feed: Feed, arrived: readonly Arrived[]): Feed {
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

/** For a reader at the end a long run is cut short now and then, so that it stays quick to draw. */
export function wantsTrim(feed: Feed): boolean {
  return feed.items.length - feed.from > MOST_DRAWN;
}
