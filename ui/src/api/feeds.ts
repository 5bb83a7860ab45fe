// The runs that are looked at, kept up to date: the state that components draw from.

import { useEffect } from "react";
import { create } from "zustand";
import { type Feed, extended, loaded, received } from "../model/feed.ts";
import type { Arrived, Link, Told } from "../model/link.ts";
import { address, get } from "./client.ts";
import { connect } from "./live.ts";
import { refreshAll, refreshAfter } from "./queries.ts";
import type { WindowView } from "./types.ts";
import { t } from "../i18n/index.ts";
import { usePrefs } from "../shell/prefs.ts";

interface Live {
  readonly link: Link;
  readonly feeds: Readonly<Record<string, Feed>>;
  /** Why a run cannot be shown. */
  readonly problems: Readonly<Record<string, Error>>;
  /** The newest event that the page has been told of, of any run. */
  readonly seen: number;
}

export const useLive = create<Live>(() => ({ link: { state: "connecting" }, feeds: {}, problems: {}, seen: 0 }));

/** Enough to read, quick to fetch; the rest comes when it is wanted. */
const OPENED_WITH = 400;
const MOST_AT_ONCE = 5000;

const fetching = new Set<string>();

/** How often a run is looked at, and what arrived before its snapshot did. */
const lookers = new Map<string, number>();
const waiting = new Map<string, Arrived[]>();
let line: ReturnType<typeof connect> | null = null;
let isWelcome = false;

/** Connect; called once, when the page begins. */
export function begin(): void {
  line = connect(hear);
}

/** Try at once what is tried anyway after a while. */
export function retry(): void {
  line?.retry();
  for (const runId of lookers.keys()) if (!useLive.getState().feeds[runId]) void load(runId);
}

function hear(told: Told): void {
  switch (told.type) {
    case "welcome":
      isWelcome = true;
      useLive.setState({ link: told.link });
      reload();
      return;
    case "link": {
      const wasLost = useLive.getState().link.state === "lost";
      useLive.setState({ link: told.link });
      if (told.link.state === "live" && wasLost) {
        refreshAll();
        for (const runId of lookers.keys()) if (!useLive.getState().feeds[runId]) void load(runId);
      }
      return;
    }
    case "reset":
      useLive.setState({ feeds: {} });
      reload();
      return;
    case "arrived":
      arrived(told.events);
  }
}

function reload(): void {
  refreshAll();
  for (const runId of lookers.keys()) void load(runId);
}

function arrived(events: readonly Arrived[]): void {
  const byRun = Map.groupBy(events, ({ event }) => event.runId);
  const feeds = { ...useLive.getState().feeds };
  for (const [runId, some] of byRun) {
    waiting.get(runId)?.push(...some);
    const feed = feeds[runId];
    if (feed) feeds[runId] = received(feed, some, t);
  }
  useLive.setState({ feeds, seen: events.at(-1)?.event.seq ?? 0 });
  refreshAfter(events.map(({ event }) => event));
}

async function load(runId: string): Promise<void> {
  if (!isWelcome || waiting.has(runId)) return;
  const meanwhile: Arrived[] = [];
  waiting.set(runId, meanwhile);
  try {
    const view = await get<WindowView>(address(["runs", runId, "window"], { last: OPENED_WITH }));
    if (!lookers.has(runId)) return;
    const feed = received(loaded(view, t), meanwhile, t);
    useLive.setState(({ feeds, problems }) => ({
      feeds: { ...feeds, [runId]: feed },
      problems: without(problems, runId),
    }));
  } catch (error) {
    const problem = error instanceof Error ? error : new Error(String(error));
    useLive.setState(({ problems }) => ({ problems: { ...problems, [runId]: problem } }));
  } finally {
    waiting.delete(runId);
  }
}

function without<T>(known: Readonly<Record<string, T>>, name: string): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(known).filter(([other]) => other !== name));
}

/** A run and what happens in it, as long as somebody looks; null while it is not there. */
export function useFeed(runId: string | null): Feed | null {
  useEffect(() => {
    if (runId === null) return;
    lookers.set(runId, (lookers.get(runId) ?? 0) + 1);
    if (!useLive.getState().feeds[runId]) void load(runId);
    return () => {
      const left = (lookers.get(runId) ?? 1) - 1;
      if (left > 0) lookers.set(runId, left);
      else {
        lookers.delete(runId);
        useLive.setState(({ feeds }) => ({ feeds: without(feeds, runId) }));
      }
    };
  }, [runId]);
  return useLive(({ feeds }) => (runId === null ? null : (feeds[runId] ?? null)));
}

export function useProblem(runId: string | null): Error | null {
  return useLive(({ problems }) => (runId === null ? null : (problems[runId] ?? null)));
}

/** Put earlier events before the first that is here; gives whether there may be more. */
export async function fetchEarlier(runId: string, count = OPENED_WITH): Promise<boolean> {
  const before = useLive.getState().feeds[runId]?.before;
  if (before == null || fetching.has(runId)) return false;
  fetching.add(runId);
  try {
    const view = await get<WindowView>(address(["runs", runId, "window"], { last: count, before }));
    useLive.setState(({ feeds }) => {
      const feed = feeds[runId];
      return feed?.before === before ? { feeds: { ...feeds, [runId]: extended(feed, view, t) } } : {};
    });
    return view.earlier;
  } finally {
    fetching.delete(runId);
  }
}

/** All of a run, for whoever searches it. */
export async function fetchAll(runId: string): Promise<void> {
  while (lookers.has(runId) && (await fetchEarlier(runId, MOST_AT_ONCE)));
}

// What is shown was put into words when it arrived.
usePrefs.subscribe(({ language }, before) => {
  if (language === before.language) return;
  useLive.setState({ feeds: {} });
  for (const runId of lookers.keys()) void load(runId);
});
