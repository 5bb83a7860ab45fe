import type { Finding } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { Badge } from "../../parts/Badge.tsx";

const TONES = { critical: "danger", major: "danger", minor: "warn", suggestion: "muted" } as const;

export function Severity({ severity }: { severity: Finding["severity"] }) {
  const t = useT();
  return <Badge tone={TONES[severity]}>{t(`review.severity.${severity}`)}</Badge>;
}
