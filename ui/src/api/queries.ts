// Lists and single things of the API, fetched when they are needed and again when an event says
// that they have changed. Nothing polls.

import { QueryClient, useQuery } from "@tanstack/react-query";
import { address, get } from "./client.ts";
import type { AsksView, Recorded, RunsView, ServerView } from "./types.ts";

export const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: Infinity, retry: false, networkMode: "always" } },
});

/** After which events what must be asked for again, besides what a view adds with staleAfter. */
const RUNS = ["run_started", "run_ended", "run_parked", "run_resumed", "run_interrupted", "proposal_applied", "proposal_undone", "task_dispatched", "turn_ended"];
const ASKS = ["person_asked", "person_answered", "run_ended", "run_interrupted"];
const stale = new Map<string, ReadonlySet<string>>([
  ["runs", new Set(RUNS)],
  ["asks", new Set(ASKS)],
]);

/** Ask anew for what begins with this key whenever one of these events happens. */
export function staleAfter(key: string, kinds: readonly Recorded["event"][]): void {
  stale.set(key, new Set(kinds));
}

const REST_MS = 300;
const due = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** A hundred events a second are no reason for a hundred questions. */
export function refreshAfter(events: readonly Recorded[]): void {
  for (const [key, kinds] of stale) if (events.some(({ event }) => kinds.has(event))) due.add(key);
  if (due.size === 0 || timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    const keys = [...due];
    due.clear();
    for (const key of keys) void queries.invalidateQueries({ queryKey: [key] });
  }, REST_MS);
}

export function refreshAll(): void {
  void queries.invalidateQueries();
}

export const useServer = () =>
  useQuery({ queryKey: ["server"], queryFn: ({ signal }) => get<ServerView>(address(["server"]), { signal }) });

export const useRuns = () =>
  useQuery({ queryKey: ["runs"], queryFn: ({ signal }) => get<RunsView>(address(["runs"]), { signal }) });

export const useAsks = () =>
  useQuery({ queryKey: ["asks"], queryFn: ({ signal }) => get<AsksView>(address(["asks"]), { signal }) });
