import { type Dispatch, useCallback, useEffect, useRef } from "react";
import { fetchRuns, fetchWorkspace } from "./api/client.ts";
import { type Following, follow } from "./api/live.ts";
import type { News } from "./model/page.ts";

const LOOK_AGAIN_MS = 3000;

/** Keeps the list of runs fresh while somebody looks; gives a way to look at once. */
export function useRuns(tell: Dispatch<News>): () => void {
  const now = useRef<(() => void) | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    let timer = 0;
    let isKnown = false;

    async function look(): Promise<void> {
      clearTimeout(timer);
      if (document.visibilityState === "hidden") return;
      try {
        if (!isKnown) {
          tell({ type: "workspace", name: await fetchWorkspace(leaving.signal) });
          isKnown = true;
        }
        tell({ type: "runs", runs: await fetchRuns(leaving.signal) });
      } catch (error) {
        if (leaving.signal.aborted) return;
        const reason = error instanceof Error ? error.message : String(error);
        tell({ type: "listLost", reason, retryMs: LOOK_AGAIN_MS });
      }
      timer = window.setTimeout(() => void look(), LOOK_AGAIN_MS);
    }

    const looked = () => void look();
    now.current = looked;
    document.addEventListener("visibilitychange", looked);
    void look();
    return () => {
      document.removeEventListener("visibilitychange", looked);
      clearTimeout(timer);
      leaving.abort();
    };
  }, [tell]);
  return useCallback(() => now.current?.(), []);
}

/** Follows the chosen run; gives a way to try again at once. */
export function useRun(runId: string | null, tell: Dispatch<News>): () => void {
  const following = useRef<Following | null>(null);
  useEffect(() => {
    if (runId === null) return;
    const current = follow(runId, {
      snapshot: (snapshot) => {
        tell({ type: "snapshot", runId, snapshot });
      },
      arrived: (events) => {
        tell({ type: "arrived", runId, events });
      },
      link: (link) => {
        tell({ type: "link", link });
      },
    });
    following.current = current;
    return () => {
      following.current = null;
      current.stop();
    };
  }, [runId, tell]);
  return useCallback(() => following.current?.retry(), []);
}
