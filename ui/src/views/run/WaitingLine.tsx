import { CircleHelp, Clock } from "lucide-react";
import { address, post } from "../../api/client.ts";
import { useT } from "../../i18n/index.ts";
import { type RunView, waiting } from "../../model/run.ts";
import { dollars, short } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { Visible } from "../../parts/Visible.tsx";
import { complain } from "../../parts/toast.tsx";
import { go } from "../../shell/route.ts";
import { Elapsed } from "./Elapsed.tsx";

/** Whom the run waits for, as one line, with what can be done about it; and what it has cost. */
export function WaitingLine({ run, runId }: { run: RunView; runId: string }) {
  const t = useT();
  const { on, who, what, more } = waiting(run);
  const Icon = on === "person" ? CircleHelp : Clock;
  const applied = run.tasks.filter((task) => task.status === "applied").length;
  return (
    <div className="status">
      <p className="waiting" data-on={on} role="status">
        <Icon size={16} strokeWidth={1.5} aria-hidden />
        <span>
          {on === "person" && <strong>{t("wait.for", { name: who })}</strong>}
          {on === "agents" && t("wait.working", { name: who })}
          {on === "resume" && t("wait.resume")}
          {on === "engine" && t("wait.engine")}
          {on === "over" && t(`status.${run.status}`)}
          {what && <>: <Visible text={what} /></>}
          {more > 0 && ` ${t("wait.more", { count: more })}`}
        </span>
        {on === "person" && (
          <Button small keys="g i" onClick={() => { go({ view: "inbox", run: null }); }}>
            {t("wait.answer")}
          </Button>
        )}
        {(on === "resume" || run.status === "stopped") && (
          <Button small onClick={() => { post(address(["runs", runId, "resume"])).catch(complain); }}>
            {t("wait.resumeNow")}
          </Button>
        )}
      </p>
      <dl className="meters">
        <dt>{t("run.applied")}</dt>
        <dd>{t("run.appliedOf", { applied, total: run.tasks.length })}</dd>
        {run.startedMs > 0 && (
          <>
            <dt>{t("run.time")}</dt>
            <dd>
              <Elapsed from={run.startedMs} to={run.endedMs} />
            </dd>
          </>
        )}
        {run.tokens > 0 && (
          <>
            <dt>{t("run.tokens")}</dt>
            <dd>{short(run.tokens)}</dd>
          </>
        )}
        {run.cost > 0 && (
          <>
            <dt>{t("run.cost")}</dt>
            <dd>
              {run.costIsEstimate && "≈ "}
              {dollars(run.cost)}
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}
