import { GitPullRequest } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { retry, useFeed, useProblem } from "../../api/feeds.ts";
import { useAsks } from "../../api/queries.ts";
import { useT } from "../../i18n/index.ts";
import { type Entry, queueOf } from "../../model/review/queue.ts";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { useCurrentRun } from "../../shell/current.ts";
import { go, useRoute } from "../../shell/route.ts";
import { WaitingLine } from "../run/WaitingLine.tsx";
import { ProposalView } from "./ProposalView.tsx";
import { Queue } from "./Queue.tsx";
import "../../styles/run.css";
import "../../styles/review.css";

export const PANELS = ["queue", "files", "diff", "evidence"] as const;
export type Panel = (typeof PANELS)[number];

export default function ReviewView() {
  const t = useT();
  const runId = useCurrentRun();
  const { args } = useRoute();
  const feed = useFeed(runId);
  const problem = useProblem(runId);
  const asks = useAsks();
  const [panel, show] = useState<Panel>("diff");
  const run = feed?.run ?? null;
  const entries = useMemo(() => queueOf(run, runId, asks.data?.asks ?? []), [run, runId, asks.data]);
  const chosen = chosenOf(entries, args.task, runId);

  // The address names what is looked at, so that a verdict does not put another one under the eyes.
  const task = args.task;
  useEffect(() => {
    if (task === undefined && chosen) go({ view: "review", run: chosen.runId, args: { ...args, task: chosen.taskId } });
  }, [task, chosen, args]);

  if (problem && !feed) return <ErrorState title={t("run.cannotShow")} error={problem} onRetry={retry} />;
  if (runId !== null && !feed) return <Skeleton />;
  if (asks.error && !asks.data) return <ErrorState title={t("review.cannotAsk")} error={asks.error} onRetry={() => void asks.refetch()} />;
  if (!entries.length) return <EmptyState icon={GitPullRequest} title={t("review.none")} text={t("review.noneText")} />;
  const names = feed?.run.names ?? {};
  return (
    <div className="review" data-panel={panel}>
      {feed && runId !== null && <WaitingLine run={feed.run} runId={runId} />}
      <div className="review-panels seg" role="group" aria-label={t("review.panels")}>
        {PANELS.map((one) => (
          <button
            key={one}
            type="button"
            data-panel={one}
            aria-pressed={panel === one}
            onClick={() => {
              show(one);
            }}
          >
            {t(`review.panel.${one}`)}
          </button>
        ))}
      </div>
      <Queue
        entries={entries}
        chosen={chosen}
        names={names}
        onChoose={() => {
          show("diff");
        }}
      />
      {chosen ? (
        <ProposalView key={`${chosen.runId}/${chosen.taskId}`} entry={chosen} entries={entries} names={names} onPanel={show} />
      ) : (
        <EmptyState icon={GitPullRequest} title={t("review.choose")} />
      )}
    </div>
  );
}

/** The one that the address names, or the first that waits. */
function chosenOf(entries: readonly Entry[], task: string | undefined, runId: string | null): Entry | null {
  if (task !== undefined) return entries.find((entry) => entry.taskId === task && entry.runId === runId) ?? null;
  return entries.find((entry) => entry.runId === runId) ?? entries[0] ?? null;
}
