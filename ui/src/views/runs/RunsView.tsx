import { List } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { EmptyState } from "../../parts/States.tsx";

export default function RunsView() {
  const t = useT();
  return <EmptyState icon={List} title={t("view.runs")} />;
}
