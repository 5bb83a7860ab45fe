// What the page asks of the server. The cookie that says who asks is the browser's matter.

import type { RunSummary, RunsView, ServerView, Snapshot } from "./types.ts";

export class Unreachable extends Error {}

export async function fetchRuns(signal: AbortSignal): Promise<readonly RunSummary[]> {
  return ((await get("/api/v1/runs", signal)) as RunsView).runs;
}

/** The folder this server works for, by its own name. */
export async function fetchWorkspace(signal: AbortSignal): Promise<string> {
  const { root } = (await get("/api/v1/server", signal)) as ServerView;
  return root.split(/[/\\]/).findLast((part) => part !== "") ?? root;
}

export async function fetchSnapshot(runId: string, signal: AbortSignal): Promise<Snapshot> {
  return (await get(`/api/v1/runs/${encodeURIComponent(runId)}/events`, signal)) as Snapshot;
}

export function streamAddress(runId: string, lastEventId: string): string {
  return `/api/v1/events?${new URLSearchParams({ run: runId, last_event_id: lastEventId }).toString()}`;
}

async function get(address: string, signal: AbortSignal): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(address, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Unreachable("the server does not answer");
  }
  if (answer.ok) return answer.json();
  throw new Unreachable(REFUSALS[answer.status] ?? `the server answered ${answer.status}`);
}

const REFUSALS: Readonly<Record<number, string>> = {
  401: "this browser is not let in: open the link that agentcanvas printed",
  403: "this browser is not let in: open the link that agentcanvas printed",
  404: "the server does not know this run",
};
