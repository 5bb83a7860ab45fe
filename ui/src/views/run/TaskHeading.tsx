import { ChevronDown, ChevronRight } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import type { TaskRow } from "../../model/rows.ts";
import { duration, titleOf } from "../../model/words.ts";
import { Pill } from "../../parts/Pill.tsx";
import { Words } from "../../parts/Words.tsx";

export function TaskHeading({ row, onFold }: { row: TaskRow; onFold: () => void }) {
  const t = useT();
  const Chevron = row.folded ? ChevronRight : ChevronDown;
  return (
    <h3 className="task-heading">
      <button type="button" aria-expanded={!row.folded} onClick={onFold}>
        <Chevron size={14} aria-hidden />
        {row.taskId && <span className="task-id">{plain(row.taskId)}</span>}
        <span className="ellipsis">{row.taskId ? <Words text={titleOf(row.title, "")} /> : t("timeline.noTask")}</span>
      </button>
      {row.status && <Pill status={row.status} />}
      <span className="rule" />
      <span className="subtle">
        {t("timeline.eventCount", { count: row.count })}
        {row.ms > 0 && ` · ${duration(row.ms)}`}
      </span>
    </h3>
  );
}
