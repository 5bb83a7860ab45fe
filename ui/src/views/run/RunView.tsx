import { Play } from "lucide-react";
import { useMemo } from "react";
import { retry, useFeed, useProblem } from "../../api/feeds.ts";
import { useRuns } from "../../api/queries.ts";
import { useT } from "../../i18n/index.ts";
import type { RunView as Run } from "../../model/run.ts";
import { ErrorState, Skeleton } from "../../parts/States.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { useCurrentRun } from "../../shell/current.ts";
import { go } from "../../shell/route.ts";
import { useShell } from "../../shell/state.ts";
import { NoRuns } from "./NoRuns.tsx";
import { Side } from "./Side.tsx";
import { Timeline } from "./Timeline.tsx";
import { WaitingLine } from "./WaitingLine.tsx";
import "../../styles/run.css";
import "../../styles/timeline.css";

export default function RunView() {
  const t = useT();
  const runId = useCurrentRun();
  const feed = useFeed(runId);
  const problem = useProblem(runId);
  const { data } = useRuns();
  useDecided(feed?.run ?? null, runId);
  if (feed && runId !== null) {
    return (
      <div className="run">
        <WaitingLine run={feed.run} runId={runId} />
        <Timeline key={runId} runId={runId} feed={feed} />
        <Side run={feed.run} runId={runId} />
      </div>
    );
  }
  if (problem) return <ErrorState title={t("run.cannotShow")} error={problem} onRetry={retry} />;
  if (data && runId === null) {
    return <NoRuns icon={Play} />;
  }
  return <Skeleton />;
}

/** To the change that was applied last, and the way back from it. */
function useDecided(run: Run | null, runId: string | null): void {
  const t = useT();
  const last = run?.tasks.findLast(({ status }) => status === "applied")?.taskId;
  const actions = useMemo((): Action[] => {
    const group = t("group.run");
    const disabled = last === undefined ? t("undo.nothing") : undefined;
    return [
      {
        id: "run.diff",
        title: t("run.lastDiff"),
        group,
        keys: "d",
        disabled,
        run: () => {
          if (last !== undefined) go({ view: "review", run: runId, args: { task: last } });
        },
      },
      {
        id: "run.undo",
        title: t("undo.last"),
        group,
        keys: "z",
        disabled,
        run: () => {
          if (last !== undefined && runId !== null) useShell.getState().ask({ type: "undo", runId, taskId: last });
        },
      },
    ];
  }, [t, last, runId]);
  useActions(actions);
}
