import { Play } from "lucide-react";
import { retry, useFeed, useProblem } from "../../api/feeds.ts";
import { useRuns } from "../../api/queries.ts";
import { useT } from "../../i18n/index.ts";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { useCurrentRun } from "../../shell/current.ts";
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
    return (
      <EmptyState icon={Play} title={t("run.none")} text={t("run.noneText")}>
        <code>agentcanvas run &quot;fix the failing test&quot;</code>
      </EmptyState>
    );
  }
  return <Skeleton />;
}
