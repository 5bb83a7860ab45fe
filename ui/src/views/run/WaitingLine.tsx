import type { RunView } from "../../model/run.ts";
import { waiting } from "../../model/run.ts";
import { dollars, short } from "../../model/words.ts";
import { Icon } from "../../parts/Icon.tsx";
import { useT } from "../../i18n/index.ts";

export function WaitingLine({ run, runId }: { run: RunView; runId: string }) {
  const t = useT();
  const { on, who, what, command } = waiting(run, runId);
  const applied = run.tasks.filter((task) => task.status === "applied").length;
  return (
    <div className="status">
      <p className="waiting" data-on={on} role="status">
        <Icon name={on === "person" ? "ask" : "clock"} />
        <span>
          {on === "person" && "Waiting for "}
          {on === "agents" && "Working: "}
          {on === "resume" && "Interrupted"}
          {who && <strong>{who}</strong>}
          {on === "engine" && "The engine is at work"}
          {on === "over" && t(`status.${run.status}`)}
          {what && `: ${what}`}
        </span>
        {command !== undefined && <code>{command}</code>}
      </p>
      <dl className="meters">
        <dt>Applied</dt>
        <dd>
          {applied} of {run.tasks.length}
        </dd>
        {run.tokens > 0 && (
          <>
            <dt>Tokens</dt>
            <dd>{short(run.tokens)}</dd>
          </>
        )}
        {run.cost > 0 && (
          <>
            <dt>Cost</dt>
            <dd>{dollars(run.cost)}</dd>
          </>
        )}
      </dl>
    </div>
  );
}
