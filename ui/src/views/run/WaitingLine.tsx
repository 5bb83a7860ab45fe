import { CircleHelp, Clock } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { type RunView, waiting } from "../../model/run.ts";
import { isYou } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { Visible } from "../../parts/Visible.tsx";
import { resume } from "../../shell/runActions.ts";
import { useShell } from "../../shell/state.ts";
import { Meters } from "./Meters.tsx";
import "../../styles/run.css";

/** Whom the run waits for, as one line, with what can be done about it; and what it has cost. */
export function WaitingLine({ run, runId }: { run: RunView; runId: string }) {
  const t = useT();
  const { on, who, what, more } = waiting(run);
  const Icon = on === "person" ? CircleHelp : Clock;
  return (
    <div className="status">
      <p className="waiting" data-on={on} role="status">
        <Icon size={16} strokeWidth={1.5} aria-hidden />
        <span>
          {on === "person" && <strong>{isYou(who) ? t("wait.forYou") : t("wait.for", { name: who })}</strong>}
          {on === "agents" && t("wait.working", { name: who })}
          {on === "resume" && t("wait.resume")}
          {on === "engine" && t("wait.engine")}
          {on === "over" && t(`status.${run.status}`)}
          {what && <>: <Visible text={what} /></>}
          {more > 0 && ` ${t("wait.more", { count: more })}`}
        </span>
        {on === "person" && (
          <Button small keys="i" onClick={() => { useShell.getState().open("asks"); }}>
            {t("wait.answer")}
          </Button>
        )}
        {(on === "resume" || run.status === "stopped") && (
          <Button small onClick={() => { resume(runId); }}>
            {t("wait.resumeNow")}
          </Button>
        )}
      </p>
      <Meters run={run} runId={runId} />
    </div>
  );
}
