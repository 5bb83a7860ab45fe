import { useFeed } from "../api/feeds.ts";
import { WaitingLine } from "../views/run/WaitingLine.tsx";
import { useCurrentRun } from "./current.ts";

/** Whom the run waits for, in the views that do not say it themselves. */
export function RunLine() {
  const runId = useCurrentRun();
  const feed = useFeed(runId);
  return feed && runId !== null ? <WaitingLine run={feed.run} runId={runId} /> : null;
}
