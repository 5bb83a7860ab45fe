import { ScrollText } from "lucide-react";
import { useFeed, useProblem, retry } from "../../api/feeds.ts";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { useCurrentRun } from "../../shell/current.ts";
import { addressOf, useRoute } from "../../shell/route.ts";
import { NoRuns } from "../run/NoRuns.tsx";
import { Talk } from "./Talk.tsx";
import "../../styles/timeline.css";
import "../../styles/transcript.css";

/** On a phone the team may be wider than the window. */
const intoSight = (shown: HTMLElement | null): void => {
  shown?.scrollIntoView({ block: "nearest", inline: "nearest" });
};

/** What each worker said and did, one worker at a time. */
export default function TranscriptView() {
  const t = useT();
  const runId = useCurrentRun();
  const feed = useFeed(runId);
  const problem = useProblem(runId);
  const { args } = useRoute();
  if (problem) return <ErrorState title={t("run.cannotShow")} error={problem} onRetry={retry} />;
  if (runId === null) return <NoRuns icon={ScrollText} />;
  if (!feed) return <Skeleton />;
  const { team, turns } = feed.run;
  const member =
    team.find(({ id }) => id === args.agent) ??
    team.find(({ id }) => turns.some((turn) => turn.agent === id)) ??
    team.find(({ role }) => role === "worker") ??
    team[0];
  if (!member) return <EmptyState icon={ScrollText} title={t("transcript.none")} />;
  return (
    <div className="transcript">
      <nav className="agents-nav" aria-label={t("run.team")}>
        {team.map(({ id, name, role }) => (
          <a
            key={id}
            ref={id === member.id ? intoSight : undefined}
            href={addressOf({ view: "transcript", run: runId, args: { agent: id } })}
            aria-current={id === member.id ? "true" : undefined}
          >
            <span className="letter" aria-hidden="true">
              {plain(name).charAt(0).toUpperCase()}
            </span>
            <span className="ellipsis">
              <strong>{plain(name)}</strong> <span className="subtle">{plain(role)}</span>
            </span>
            {turns.some((turn) => turn.agent === id) && <span className="dot" data-tone="accent" data-live />}
          </a>
        ))}
      </nav>
      <Talk key={`${runId}/${member.id}`} runId={runId} member={{ ...member, name: plain(member.name) }} run={feed.run} seen={feed.cursor.seq} />
    </div>
  );
}
