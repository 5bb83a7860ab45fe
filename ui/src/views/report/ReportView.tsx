import { Copy, Download, FileText } from "lucide-react";
import { useQuery } from "@tanstack/react-query";
import { Suspense, useCallback, useMemo } from "react";
import { address, getText } from "../../api/client.ts";
import { staleAfter } from "../../api/queries.ts";
import { useT } from "../../i18n/index.ts";
import { Button } from "../../parts/Button.tsx";
import { ErrorState, Skeleton } from "../../parts/States.tsx";
import { complain, toast } from "../../parts/toast.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { useCurrentRun } from "../../shell/current.ts";
import { NoRuns } from "../run/NoRuns.tsx";
import { lazily } from "../lazily.ts";
import "../../styles/report.css";

const Markdown = lazily(() => import("./Markdown.tsx"));
const FORMS = ["md", "html", "json"] as const;

staleAfter("report", [
  "task_dispatched",
  "proposal_submitted",
  "proposal_reviewed",
  "proposal_applied",
  "proposal_undone",
  "run_ended",
]);

export default function ReportView() {
  const t = useT();
  const runId = useCurrentRun();
  const { data, error, refetch } = useQuery({
    queryKey: ["report", runId],
    enabled: runId !== null,
    queryFn: ({ signal }) => getText(address(["runs", runId ?? "", "report"]), { signal }),
  });
  const copy = useCallback(() => {
    navigator.clipboard.writeText(data ?? "").then(() => {
      toast(t("copied"));
    }, complain);
  }, [data, t]);
  useActions(
    useMemo((): Action[] => {
      if (runId === null) return [];
      const group = t("view.report");
      return [
        { id: "report.copy", title: t("report.copy"), group, keys: "y", disabled: data === undefined ? t("loading") : undefined, run: copy },
        ...FORMS.map((form) => ({
          id: `report.${form}`,
          title: t("report.download", { form }),
          group,
          run: () => { download(runId, form); },
        })),
      ];
    }, [t, runId, data, copy]),
  );
  if (runId === null) return <NoRuns icon={FileText} />;
  if (error) return <ErrorState title={t("report.cannot")} error={error} onRetry={() => void refetch()} />;
  return (
    <div className="report">
      <div className="toolbar">
        <Button
          keys="y"
          blocked={data === undefined ? t("loading") : undefined}
          onClick={copy}
        >
          <Copy size={14} strokeWidth={1.5} aria-hidden />
          {t("copy")}
        </Button>
        {FORMS.map((form) => (
          <a
            key={form}
            className="button"
            {...linkTo(runId, form)}
            aria-label={t("report.download", { form })}
          >
            <Download size={14} strokeWidth={1.5} aria-hidden />
            {form}
          </a>
        ))}
      </div>
      {data === undefined ? (
        <Skeleton rows={6} height={24} />
      ) : (
        <Suspense fallback={<Skeleton rows={6} height={24} />}>
          <Markdown text={data} />
        </Suspense>
      )}
    </div>
  );
}

type Form = (typeof FORMS)[number];

const linkTo = (runId: string, form: Form) => ({
  href: address(["runs", runId, "report"], { format: form }),
  download: `${runId}.${form}`,
});

function download(runId: string, form: Form): void {
  Object.assign(document.createElement("a"), linkTo(runId, form)).click();
}
