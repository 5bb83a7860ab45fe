import { Inbox } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { EmptyState } from "../../parts/States.tsx";

export default function InboxView() {
  const t = useT();
  return <EmptyState icon={Inbox} title={t("view.inbox")} />;
}
