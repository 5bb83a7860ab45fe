// A plan as a person sees it and changes it before it is carried out.

export interface PlanTask {
  readonly task_id: string;
  readonly agent: string;
  readonly description: string;
  readonly [more: string]: unknown;
}

export interface Plan {
  readonly tasks: readonly PlanTask[];
  readonly [more: string]: unknown;
}

/** The plan that data holds; null when it holds none. */
export function planIn(data: unknown): Plan | null {
  if (typeof data !== "object" || data === null || !("tasks" in data) || !Array.isArray(data.tasks)) return null;
  return data.tasks.every(isTask) ? (data as Plan) : null;
}

function isTask(data: unknown): boolean {
  if (typeof data !== "object" || data === null) return false;
  return ["task_id", "agent", "description"].every(
    (name) => typeof (data as Readonly<Record<string, unknown>>)[name] === "string",
  );
}

export function withTask(plan: Plan, index: number, change: Partial<PlanTask>): Plan {
  return { ...plan, tasks: plan.tasks.map((task, at) => (at === index ? { ...task, ...change } : task)) };
}

/** Without a task, and without the wish of others to wait for it. */
export function withoutTask(plan: Plan, index: number): Plan {
  const gone = plan.tasks[index]?.task_id;
  const tasks = plan.tasks
    .filter((_, at) => at !== index)
    .map((task) => {
      const { depends_on: after } = task;
      if (!Array.isArray(after)) return task;
      return { ...task, depends_on: after.filter((other) => (other as { task_id?: string }).task_id !== gone) };
    });
  return { ...plan, tasks };
}

export function withNewTask(plan: Plan, agent: string): Plan {
  const taken = new Set(plan.tasks.map((task) => task.task_id));
  let number = plan.tasks.length + 1;
  while (taken.has(`task-${number}`)) number++;
  return { ...plan, tasks: [...plan.tasks, { task_id: `task-${number}`, agent, description: "" }] };
}

/** Whether each task says what is to be done and by whom. */
export const isWhole = (plan: Plan): boolean =>
  plan.tasks.length > 0 && plan.tasks.every((task) => task.agent !== "" && task.description.trim() !== "");
