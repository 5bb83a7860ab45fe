import { Plus, X } from "lucide-react";
import { useState } from "react";
import { useFeed } from "../../api/feeds.ts";
import type { PersonAsk } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import { type Plan, isWhole, planIn, withNewTask, withTask, withoutTask } from "../../model/plan.ts";
import { Button } from "../../parts/Button.tsx";
import type { Answering } from "./AskForm.tsx";

/** The plan before it is carried out: who does what. It is accepted as it stands here. */
export function PlanForm({ ask, busy, answer }: { ask: PersonAsk } & Answering) {
  const t = useT();
  const team = useFeed(ask.run_id)?.run.team ?? [];
  const [plan, setPlan] = useState<Plan>(() => planIn(ask.default) ?? { tasks: [] });
  const agents = [...new Set([...team.map(({ id }) => id), ...plan.tasks.map(({ agent }) => agent)])];
  const nameOf = (id: string) => plain(team.find((member) => member.id === id)?.name ?? id);
  return (
    <div className="plan">
      <ol>
        {plan.tasks.map((task, index) => (
          <li key={task.task_id}>
            <span className="task-id">{plain(task.task_id)}</span>
            <select
              className="input"
              aria-label={t("plan.agent", { task: task.task_id })}
              value={task.agent}
              onChange={(event) => { setPlan(withTask(plan, index, { agent: event.target.value })); }}
            >
              {agents.map((id) => (
                <option key={id} value={id}>
                  {nameOf(id)}
                </option>
              ))}
            </select>
            <Button
              small
              look="ghost"
              aria-label={t("plan.remove", { task: task.task_id })}
              onClick={() => { setPlan(withoutTask(plan, index)); }}
            >
              <X size={14} aria-hidden />
            </Button>
            <textarea
              className="input"
              rows={2}
              aria-label={t("plan.description", { task: task.task_id })}
              value={task.description}
              onChange={(event) => { setPlan(withTask(plan, index, { description: event.target.value })); }}
            />
          </li>
        ))}
      </ol>
      <div className="row">
        <Button look="apply" busy={busy} blocked={isWhole(plan) ? undefined : t("plan.notWhole")} onClick={() => { answer(plan); }}>
          {t("plan.accept")}
        </Button>
        <Button onClick={() => { setPlan(withNewTask(plan, agents[0] ?? "")); }}>
          <Plus size={14} aria-hidden />
          {t("plan.add")}
        </Button>
        <Button look="no" busy={busy} onClick={() => { answer(null); }}>
          {t("plan.refuse")}
        </Button>
      </div>
    </div>
  );
}
