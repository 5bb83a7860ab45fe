import { useQuery } from "@tanstack/react-query";
import { address, get } from "../../api/client.ts";
import type { Budget } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import type { RunView } from "../../model/run.ts";
import { about, dollars, duration, short } from "../../model/words.ts";
import { useElapsed } from "./Elapsed.tsx";

/** From here on a meter warns. */
const MUCH = 0.8;
const MINUTE_MS = 60_000;

/** What a run has used, of what it may use before it ends by itself. */
export function Meters({ run, runId }: { run: RunView; runId: string }) {
  const t = useT();
  const elapsed = useElapsed(run.startedMs, run.endedMs);
  const { data: budget } = useQuery({
    queryKey: ["budget", runId],
    queryFn: ({ signal }) => get<Budget>(address(["runs", runId, "budget"]), { signal }),
  });
  const applied = run.tasks.filter((task) => task.status === "applied").length;
  const minutes = budget?.minutes;
  return (
    <dl className="meters">
      <Meter label={t("run.applied")} value={t("run.appliedOf", { applied, total: run.tasks.length })} />
      {run.startedMs > 0 && (
        <Meter
          label={t("run.time")}
          value={duration(elapsed)}
          // While it waits for a person its clock stands still, so this is no share.
          most={minutes == null ? undefined : duration(minutes * MINUTE_MS)}
        />
      )}
      {run.tokens > 0 && (
        <Meter
          label={t("run.tokens")}
          value={about(short(run.tokens), run.usageIsEstimate)}
          most={budget?.tokens == null ? undefined : short(budget.tokens)}
          share={budget?.tokens == null ? undefined : run.tokens / budget.tokens}
        />
      )}
      {run.cost > 0 && (
        <Meter
          label={t("run.cost")}
          value={about(dollars(run.cost), run.usageIsEstimate)}
          most={budget?.cost == null ? undefined : dollars(budget.cost)}
          share={budget?.cost == null ? undefined : run.cost / budget.cost}
        />
      )}
    </dl>
  );
}

interface MeterProps {
  readonly label: string;
  readonly value: string;
  readonly most?: string | undefined;
  readonly share?: number | undefined;
}

function Meter({ label, value, most, share }: MeterProps) {
  return (
    <div className="meter" data-tone={share !== undefined && share >= MUCH ? "warn" : "accent"}>
      <dt>{label}</dt>
      <dd>
        {value}
        {most !== undefined && <span className="subtle"> / {most}</span>}
        {share !== undefined && (
          <svg className="meter-bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
            <rect width={Math.min(100, 100 * share)} height="3" />
          </svg>
        )}
      </dd>
    </div>
  );
}
