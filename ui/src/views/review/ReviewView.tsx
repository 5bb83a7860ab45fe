import { GitPullRequest } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { EmptyState } from "../../parts/States.tsx";

export default function ReviewView() {
  const t = useT();
  return <EmptyState icon={GitPullRequest} title={t("review.none")} text={t("review.noneText")} />;
}
