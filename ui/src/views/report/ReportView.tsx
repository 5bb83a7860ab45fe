import { FileText } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { EmptyState } from "../../parts/States.tsx";

export default function ReportView() {
  const t = useT();
  return <EmptyState icon={FileText} title={t("view.report")} />;
}
