import type { TaskStatus } from "../../api/types.ts";
import type { RunView, TaskView } from "../../model/run.ts";
import { useT } from "../../i18n/index.ts";
import { nameOf, plural } from "../../model/words.ts";
import { type AnyIcon, Icon } from "../../parts/Icon.tsx";
import { statusTone } from "../../parts/Pill.tsx";
import { Words } from "../../parts/Words.tsx";

const ICONS: Readonly<Record<TaskStatus, AnyIcon>> = {
  dispatched: "half",
  in_review: "half",
  revising: "revise",
  applied: "done",
  rejected: "no",
  failed: "no",
  answered: "done",
  undone: "todo",
};

export function Side({ run }: { run: RunView }) {
  return (
    <aside className="side">
      <Tasks run={run} />
      <Agents run={run} />
    </aside>
  );
}

function Tasks({ run }: { run: RunView }) {
  return (
    <section aria-labelledby="tasks">
      <h2 id="tasks">
        Tasks <span className="subtle">{plural(run.tasks.length, "task")}</span>
      </h2>
      {run.tasks.length === 0 && <p className="subtle">No task was handed out yet.</p>}
      <ul className="tasks">
        {run.tasks.map((task) => (
          <Task key={task.taskId} task={task} run={run} />
        ))}
      </ul>
    </section>
  );
}

function Task({ task, run }: { task: TaskView; run: RunView }) {
  const t = useT();
  const again = task.attempts > 1 ? `, ${task.attempts} attempts` : "";
  return (
    <li data-task={task.taskId} data-status={task.status}>
      <span className="card-icon" data-tone={statusTone(task.status)}>
        <Icon name={ICONS[task.status]} />
      </span>
      <div className="task-text">
        <p className="clamp" title={task.instruction}>
          <span className="task-id">{task.taskId}</span> <Words text={task.instruction} />
        </p>
        <p className="subtle">
          {nameOf(run.names, task.worker)}
          {again}
        </p>
      </div>
      <span className="task-state" data-tone={statusTone(task.status)}>
        {t(`status.${task.status}`)}
      </span>
    </li>
  );
}

function Agents({ run }: { run: RunView }) {
  if (run.team.length === 0) return null;
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">Team</h2>
      <ul className="agents">
        {run.team.map((member) => {
          const turn = run.turns.find((other) => other.agent === member.id);
          return (
            <li key={member.id}>
              <span className="letter" aria-hidden="true">
                {member.name.charAt(0).toUpperCase()}
              </span>
              <span className="agent-text">
                <strong>{member.name}</strong> <span className="subtle">{member.role}</span>
                {turn?.step && <code className="step">{turn.step}</code>}
              </span>
              <span className="pill" data-tone={turn ? "accent" : "muted"}>
                {turn ? "Working" : "Idle"}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
