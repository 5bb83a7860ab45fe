import { type LucideIcon, Plus } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { Button } from "../../parts/Button.tsx";
import { EmptyState } from "../../parts/States.tsx";
import { go } from "../../shell/route.ts";

/** What every view of a run shows before there is one: how to begin, here or in the terminal. */
export function NoRuns({ icon }: { icon: LucideIcon }) {
  const t = useT();
  return (
    <EmptyState icon={icon} title={t("run.none")} text={t("run.noneText")}>
      <code>agentcanvas run &quot;fix the failing test&quot;</code>
      <Button look="primary" onClick={() => { go({ view: "runs", run: null, args: { over: "start" } }); }}>
        <Plus size={14} aria-hidden />
        {t("start.open")}
      </Button>
    </EmptyState>
  );
}
