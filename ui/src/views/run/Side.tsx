import { ScrollText, Square } from "lucide-react";
import { useState } from "react";
import type { TaskStatus } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import type { Tone } from "../../model/items.ts";
import { hasProposal } from "../../model/review/queue.ts";
import { type RunView, type TaskView, type TurnView, isOpen, shownStatus } from "../../model/run.ts";
import { plain } from "../../model/plain.ts";
import { nameOf } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { type AnyIcon, Icon } from "../../parts/Icon.tsx";
import { statusTone } from "../../parts/Pill.tsx";
import { Words } from "../../parts/Words.tsx";
import { addressOf } from "../../shell/route.ts";
import { useShell } from "../../shell/state.ts";

const ICONS: Readonly<Record<TaskStatus | "unfinished", AnyIcon>> = {
  dispatched: "half",
  in_review: "half",
  revising: "revise",
  applied: "done",
  rejected: "no",
  failed: "no",
  answered: "done",
  undone: "todo",
  unfinished: "todo",
};

interface Props {
  readonly run: RunView;
  readonly runId: string;
}

export function Side({ run, runId }: Props) {
  return (
    <aside className="side">
      {isLong(run.reason) && <Ended run={run} />}
      <Tasks run={run} runId={runId} />
      <Agents run={run} runId={runId} />
    </aside>
  );
}

/** The line above the timeline says it as well, as far as it fits. */
const isLong = (reason: string): boolean => reason.length > 60 || reason.includes("\n");

function Ended({ run }: { run: RunView }) {
  const t = useT();
  return (
    <section aria-labelledby="reason">
      <h2 id="reason">{t("run.reason")}</h2>
      <p className="reason">{plain(run.reason)}</p>
    </section>
  );
}

/** The latest; a run may have thousands, and who looks for one finds it in the timeline. */
const SHOWN_TASKS = 30;
/** From here on it is worth leaving out what is settled. */
const MANY_TASKS = 8;

function Tasks({ run, runId }: Props) {
  const t = useT();
  const [shown, setShown] = useState(SHOWN_TASKS);
  const [onlyOpen, setOnlyOpen] = useState(false);
  const tasks = onlyOpen ? run.tasks.filter(({ status }) => isOpen(status)) : run.tasks;
  const earlier = Math.max(0, tasks.length - shown);
  return (
    <section aria-labelledby="tasks">
      <h2 id="tasks">
        {t("run.tasks")} <span className="subtle">{t("run.taskCount", { count: run.tasks.length })}</span>
      </h2>
      {run.tasks.length === 0 && <p className="subtle">{t("run.noTasks")}</p>}
      {run.tasks.length > 1 && <Progress run={run} />}
      {(earlier > 0 || run.tasks.length > MANY_TASKS) && (
        <div className="tasks-bar">
          <Button small look="ghost" aria-pressed={onlyOpen} onClick={() => { setOnlyOpen(!onlyOpen); }}>
            {t(onlyOpen ? "run.allTasks" : "run.openTasks")}
          </Button>
          {earlier > 0 && (
            <Button small look="ghost" onClick={() => { setShown(shown + 10 * SHOWN_TASKS); }}>
              {t("run.earlierTasks", { count: earlier })}
            </Button>
          )}
        </div>
      )}
      {onlyOpen && tasks.length === 0 && <p className="subtle">{t("run.noOpenTasks")}</p>}
      <ul className="tasks">
        {tasks.slice(-shown).map((task) => (
          <Task key={task.taskId} task={task} run={run} runId={runId} />
        ))}
      </ul>
    </section>
  );
}

const ENDS: readonly Tone[] = ["ok", "danger", "warn", "accent"];

/** How much of it is in, refused, in review and at work; the numbers are said beside it. */
function Progress({ run }: { run: RunView }) {
  const places = run.tasks.map(({ status }) => ENDS.indexOf(statusTone(shownStatus(status, run.status))));
  return (
    <svg className="progress" viewBox={`0 0 ${run.tasks.length} 1`} preserveAspectRatio="none" aria-hidden="true">
      {ENDS.map((tone, place) => (
        <rect
          key={tone}
          data-tone={tone}
          x={places.filter((one) => one >= 0 && one < place).length}
          width={places.filter((one) => one === place).length}
          height="1"
        />
      ))}
    </svg>
  );
}

function Task({ task, run, runId }: { task: TaskView } & Props) {
  const t = useT();
  const isWorking = run.turns.some((turn) => turn.taskId === task.taskId);
  const status = shownStatus(task.status, run.status);
  const what = (
    <>
      <span className="task-id">{plain(task.taskId)}</span> <Words text={task.instruction} />
    </>
  );
  return (
    <li data-task={task.taskId} data-status={status}>
      <span className="card-icon" data-tone={statusTone(status)}>
        <Icon name={ICONS[status]} />
      </span>
      <div className="task-text">
        <p className="clamp" title={task.instruction}>
          {hasProposal(task) ? <a href={addressOf({ view: "review", run: runId, args: { task: task.taskId } })}>{what}</a> : what}
        </p>
        <p className="subtle">
          {nameOf(run.names, task.worker)}
          {task.attempts > 1 && `, ${t("run.attempts", { count: task.attempts })}`}
        </p>
        {task.reason && (task.status === "rejected" || task.status === "failed" || task.status === "revising") && (
          <p className="clamp" title={task.reason}>
            {plain(task.reason)}
          </p>
        )}
      </div>
      <span className="task-state" data-tone={statusTone(status)}>
        {t(`status.${status}`)}
        {isWorking && <StopWork name={task.taskId} runId={runId} taskId={task.taskId} />}
      </span>
    </li>
  );
}

function Agents({ run, runId }: Props) {
  const t = useT();
  if (run.team.length === 0) return null;
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">{t("run.team")}</h2>
      <ul className="agents">
        {run.team.map((member) => (
          <Agent
            key={member.id}
            id={member.id}
            name={plain(member.name)}
            role={plain(member.role)}
            turn={run.turns.find((other) => other.agent === member.id)}
            runId={runId}
          />
        ))}
      </ul>
    </section>
  );
}

interface AgentProps {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly turn: TurnView | undefined;
  readonly runId: string;
}

function Agent({ id, name, role, turn, runId }: AgentProps) {
  const t = useT();
  return (
    <li>
      <span className="letter" aria-hidden="true">
        {name.charAt(0).toUpperCase()}
      </span>
      <span className="agent-text">
        <a
          href={addressOf({ view: "transcript", run: runId, args: { agent: id } })}
          aria-label={t("run.transcriptOf", { name })}
          title={t("run.transcriptOf", { name })}
        >
          <strong>{name}</strong> <span className="subtle">{role}</span>
          <ScrollText size={12} strokeWidth={1.5} aria-hidden />
        </a>
        {turn?.step && <code className="step">{plain(turn.step)}</code>}
      </span>
      <span className="agent-state">
        <span className="pill" data-tone={turn ? "accent" : "muted"}>
          {t(turn ? "run.working" : "run.idle")}
        </span>
        {turn && <StopWork name={name} runId={runId} agent={id} />}
      </span>
    </li>
  );
}

function StopWork({ name, runId, agent, taskId }: { name: string; runId: string; agent?: string; taskId?: string }) {
  const t = useT();
  return (
    <Button
      small
      look="ghost"
      aria-label={t("stopWork.of", { name })}
      title={t("stopWork.of", { name })}
      onClick={() => {
        useShell.getState().ask({
          type: "stopWork",
          runId,
          name,
          ...(agent !== undefined && { agent }),
          ...(taskId !== undefined && { taskId }),
        });
      }}
    >
      <Square size={10} fill="currentColor" aria-hidden />
    </Button>
  );
}
