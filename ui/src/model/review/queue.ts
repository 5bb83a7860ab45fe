// What there is to review, in the order in which it wants looking at: what waits for the person,
// what waits for somebody else, and what is settled, the latest first.

import type { PersonAsk, Recorded, TaskStatus } from "../../api/types.ts";

export type Group = "mine" | "others" | "settled";

export interface Entry {
  readonly runId: string;
  readonly taskId: string;
  readonly group: Group;
  readonly status: TaskStatus;
  readonly worker: string;
  readonly title: string;
  /** Attempts that brought a proposal. */
  readonly attempts: number;
  readonly askId?: string;
  /** Why the person is asked again. */
  readonly problem?: string;
  /** When it came to stand as it stands. */
  readonly sinceMs: number;
  /** The reason of the last verdict, so that nobody has to look for it. */
  readonly reason: string;
  /** Who reads it now, when it is not the person. */
  readonly reader?: string;
}

const REVIEW = "review:";
const SETTLED: readonly TaskStatus[] = ["applied", "rejected", "failed", "undone", "answered"];

export const taskOf = (ask: PersonAsk): string | null =>
  ask.scope.startsWith(REVIEW) ? ask.scope.slice(REVIEW.length) : null;

interface Told {
  worker: string;
  title: string;
  status: TaskStatus;
  attempts: number;
  sinceMs: number;
  reason: string;
  reader?: string;
}

/** The tasks of a run that brought a proposal, as its events tell them. */
export function entriesOf(events: readonly Recorded[], runId: string, asks: readonly PersonAsk[]): readonly Entry[] {
  const proposals = new Proposals();
  for (const event of events) proposals.take(event);
  return proposals.entries(runId, asks);
}

class Proposals {
  private readonly tasks = new Map<string, Told>();
  private readonly reading = new Map<string, string>();

  take(event: Recorded): void {
    switch (event.event) {
      case "task_dispatched": {
        const { taskId, workerId, instruction } = event.payload;
        const known = this.tasks.get(taskId);
        if (known) Object.assign(known, { worker: workerId, status: "dispatched" });
        else this.tasks.set(taskId, { worker: workerId, title: instruction, status: "dispatched", attempts: 0, sinceMs: event.ts, reason: "" });
        return;
      }
      case "proposal_submitted": {
        const task = this.moved(event.payload.taskId, "in_review", event.ts);
        if (task) [task.attempts, task.title] = [task.attempts + 1, event.payload.summary || task.title];
        return;
      }
      case "proposal_reviewed": {
        const { taskId, decision, reason, appliedAt } = event.payload;
        const status = appliedAt != null ? "applied" : decision === "revise" ? "revising" : decision === "reject" ? "rejected" : "in_review";
        const task = this.moved(taskId, status, event.ts);
        if (task) task.reason = reason ?? "";
        return;
      }
      case "proposal_applied":
        this.moved(event.payload.taskId, "applied", event.ts);
        return;
      case "proposal_undone":
        this.moved(event.payload.taskId, "undone", event.ts);
        return;
      case "task_failed": {
        const task = this.moved(event.payload.taskId, "failed", event.ts);
        if (task) task.reason = event.payload.reason;
        return;
      }
      case "turn_started":
        this.reads(event.payload.taskId ?? "", event.payload.role, event.payload.turnId, event.payload.to);
        return;
      case "turn_ended": {
        const task = this.tasks.get(this.reading.get(event.payload.turnId) ?? "");
        if (task) delete task.reader;
        return;
      }
      default:
        return;
    }
  }

  private moved(taskId: string, status: TaskStatus, ts: number): Told | undefined {
    const task = this.tasks.get(taskId);
    if (task) Object.assign(task, { status, sinceMs: ts });
    return task;
  }

  private reads(about: string, role: string | undefined, turnId: string, who: string): void {
    if (role !== "reviewer") return;
    for (const [taskId, task] of this.tasks) {
      if (!isReviewOf(about, taskId)) continue;
      task.reader = who;
      this.reading.set(turnId, taskId);
    }
  }

  entries(runId: string, asks: readonly PersonAsk[]): readonly Entry[] {
    const waiting = new Map(asks.filter((ask) => ask.run_id === runId).map((ask) => [taskOf(ask), ask]));
    return [...this.tasks].flatMap(([taskId, task]): readonly Entry[] => {
      const ask = waiting.get(taskId);
      const { ask_id: askId, problem } = ask ?? {};
      if (!task.attempts && askId === undefined) return [];
      const group = askId !== undefined ? "mine" : SETTLED.includes(task.status) ? "settled" : "others";
      return [{ runId, taskId, group, ...task, ...(askId !== undefined && { askId }), ...(problem && { problem }) }];
    });
  }
}

/** A reviewer's own task is named for the one it is about, with a number when it is asked again. */
const isReviewOf = (about: string, taskId: string): boolean =>
  about.startsWith(`review-${taskId}`) && /^(-\d+)?$/.test(about.slice(`review-${taskId}`.length));

/** Of the run that is shown, and what waits for the person in others. */
export function queueOf(shown: readonly Entry[], runId: string | null, asks: readonly PersonAsk[]): readonly Entry[] {
  const elsewhere = asks.flatMap((ask): readonly Entry[] => {
    const taskId = taskOf(ask);
    if (taskId === null || ask.run_id === runId) return [];
    const title = ask.text.split("\n", 1)[0] ?? "";
    return [{ runId: ask.run_id, taskId, group: "mine", status: "in_review", worker: ask.agent_id, title, attempts: 0, askId: ask.ask_id, sinceMs: 0, reason: "" }];
  });
  const rank = { mine: 0, others: 1, settled: 2 };
  const order = (a: Entry, b: Entry): number =>
    rank[a.group] - rank[b.group] || (a.group === "settled" ? b.sinceMs - a.sinceMs : a.sinceMs - b.sinceMs);
  return [...shown.toSorted(order), ...elsewhere].toSorted((a, b) => rank[a.group] - rank[b.group]);
}
