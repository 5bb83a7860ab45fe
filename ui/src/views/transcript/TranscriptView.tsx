import { ScrollText } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { EmptyState } from "../../parts/States.tsx";

export default function TranscriptView() {
  const t = useT();
  return <EmptyState icon={ScrollText} title={t("view.transcript")} />;
}
