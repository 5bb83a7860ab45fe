import { List, Plus, Trash2 } from "lucide-react";
import { useRuns } from "../../api/queries.ts";
import type { RunSummary } from "../../api/types.ts";
import { type Translate, useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import { isOver } from "../../model/run.ts";
import { about, dayAndTime, dollars, duration, isYou, short, titleOf } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { Pill } from "../../parts/Pill.tsx";
import { ErrorState, Skeleton } from "../../parts/States.tsx";
import { canResume, resume, retry } from "../../shell/runActions.ts";
import { addressOf, replaceArgs, useRoute } from "../../shell/route.ts";
import { Elapsed } from "../run/Elapsed.tsx";
import { NoRuns } from "../run/NoRuns.tsx";
import { CleanUpDialog } from "./CleanUpDialog.tsx";
import { StartDialog } from "./StartDialog.tsx";
import "../../styles/runs.css";

export default function RunsView() {
  const t = useT();
  const { data, error, refetch } = useRuns();
  // In the address, so that the command bar leads here from every view.
  const { over } = useRoute().args;

  return (
    <div className="runs">
      <div className="toolbar">
        <h2>{t("view.runs")}</h2>
        <span className="grow" />
        <Button onClick={() => { setOver("clean"); }}>
          <Trash2 size={14} strokeWidth={1.5} aria-hidden />
          {t("clean.open")}
        </Button>
        <Button look="primary" keys="c" onClick={() => { setOver("start"); }}>
          <Plus size={14} aria-hidden />
          {t("start.open")}
        </Button>
      </div>
      {error && !data ? (
        <ErrorState title={t("runs.cannot")} error={error} onRetry={() => void refetch()} />
      ) : !data ? (
        <Skeleton rows={6} height={40} />
      ) : data.runs.length === 0 ? (
        <NoRuns icon={List} />
      ) : (
        <Table runs={data.runs} />
      )}
      <StartDialog open={over === "start"} onOpenChange={(open) => { setOver(open ? "start" : ""); }} />
      <CleanUpDialog open={over === "clean"} onOpenChange={(open) => { setOver(open ? "clean" : ""); }} />
    </div>
  );
}

const setOver = (over: "start" | "clean" | ""): void => {
  replaceArgs({ over });
};

function Table({ runs }: { runs: readonly RunSummary[] }) {
  const t = useT();
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label={t("view.runs")}>
      <table className="table runs-table">
        <thead>
          <tr>
            <th>{t("runs.request")}</th>
            <th>{t("runs.state")}</th>
            <th>{t("runs.flow")}</th>
            <th className="number">{t("run.applied")}</th>
            <th className="number wide">{t("run.tokens")}</th>
            <th className="number">{t("run.cost")}</th>
            <th className="number">{t("run.time")}</th>
            <th>
              <span className="unseen">{t("runs.actions")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <Row key={run.runId} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The summary says `whom: for what`. */
function waitsOf(waitsFor: string, t: Translate): string {
  const [who = "", ...what] = waitsFor.split(": ");
  return [isYou(who) ? t("wait.forYou") : t("wait.for", { name: who }), ...what].join(": ");
}

function Row({ run }: { run: RunSummary }) {
  const t = useT();
  const { runId, status, request, flow, applied = 0, tasks = 0, tokens = 0, cost = 0, isEstimate = false, startedMs, endedMs } = run;
  const names = (run.team ?? []).map(plain).join(", ");
  const why = plain(run.waitsFor ? waitsOf(run.waitsFor, t) : (run.reason ?? ""));
  return (
    <tr data-run={runId}>
      <td className="request">
        <a href={addressOf({ view: "run", run: runId })}>{titleOf(request, runId)}</a>
        <p className="subtle" title={why}>
          {dayAndTime(startedMs)}
          {why && <> · <span data-tone={run.waitsFor ? "warn" : undefined}>{why}</span></>}
        </p>
      </td>
      <td className="run-state">
        <Pill status={status} />
      </td>
      <td className="run-team">
        <span>{plain(flow)}</span>
        <p className="subtle ellipsis" title={names}>
          {names}
        </p>
      </td>
      <td className="number" data-label={t("run.applied")}>{t("run.appliedOf", { applied, total: tasks })}</td>
      <td className="number wide">{tokens > 0 ? about(short(tokens), isEstimate) : "–"}</td>
      <td className="number" data-label={t("run.cost")}>{cost > 0 ? about(dollars(cost), isEstimate) : "–"}</td>
      <td className="number" data-label={t("run.time")}>{endedMs ? duration(endedMs - startedMs) : <Elapsed from={startedMs} to={null} />}</td>
      <td className="run-actions">
        <div className="row-actions">
          {canResume(status) && (
            <Button small onClick={() => { resume(runId); }}>
              {t("wait.resumeNow")}
            </Button>
          )}
          {isOver(status) && (
            <Button small onClick={() => { retry(runId); }}>
              {t("runs.retry")}
            </Button>
          )}
          <a className="button" data-small href={addressOf({ view: "report", run: runId })}>
            {t("view.report")}
          </a>
        </div>
      </td>
    </tr>
  );
}
