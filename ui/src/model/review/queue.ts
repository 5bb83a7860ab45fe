// What there is to review, in the order in which it wants looking at: what waits for the person,
// what waits for somebody else, and what is settled, the latest first.

import type { PersonAsk, TaskStatus } from "../../api/types.ts";
import { type RunView, type TaskView, taskBehind } from "../run.ts";

export type Group = "mine" | "others" | "settled";

export interface Entry {
  readonly runId: string;
  readonly taskId: string;
  readonly group: Group;
  readonly status: TaskStatus;
  readonly worker: string;
  readonly title: string;
  readonly attempts: number;
  readonly askId?: string;
  /** Why the person is asked again. */
  readonly problem?: string;
  /** The reason of the last verdict, so that nobody has to look for it. */
  readonly reason: string;
  /** Who reads it now, when it is not the person. */
  readonly reader?: string;
}

const REVIEW = "review:";
const WITH_PROPOSAL: ReadonlySet<TaskStatus> = new Set(["in_review", "revising", "applied", "rejected", "undone"]);
const SETTLED: ReadonlySet<TaskStatus> = new Set(["applied", "rejected", "failed", "undone", "answered"]);
const RANK: Readonly<Record<Group, number>> = { mine: 0, others: 1, settled: 2 };

export const taskOf = (ask: PersonAsk): string | null =>
  ask.scope.startsWith(REVIEW) ? ask.scope.slice(REVIEW.length) : null;

/** What there is in the run that is shown, and what waits for the person in others. */
export function queueOf(run: RunView | null, runId: string | null, asks: readonly PersonAsk[]): readonly Entry[] {
  const about = asks.filter((ask) => taskOf(ask) !== null);
  const here = new Map(about.filter((ask) => ask.run_id === runId).map((ask) => [taskOf(ask), ask]));
  const tasks = (run?.tasks ?? []).filter((task) => here.has(task.taskId) || hasProposal(task));
  const known = new Set((run?.tasks ?? []).map(({ taskId }) => taskId));
  const readers = new Map(run?.turns.map(({ taskId, agent }) => [known.has(taskId) ? null : taskBehind(taskId, (id) => known.has(id)), agent]));
  const shown = runId === null ? [] : tasks.map((task) => entryOf(task, runId, here.get(task.taskId), readers.get(task.taskId)));
  const settled = shown.filter(({ group }) => group === "settled").toReversed();
  const elsewhere = about.filter((ask) => ask.run_id !== runId).map(fromElsewhere);
  return [...shown.filter(({ group }) => group !== "settled"), ...elsewhere, ...settled].toSorted(
    (a, b) => RANK[a.group] - RANK[b.group],
  );
}

export const hasProposal = ({ status, attempts }: TaskView): boolean => WITH_PROPOSAL.has(status) || attempts > 1;

function entryOf(task: TaskView, runId: string, ask: PersonAsk | undefined, reader: string | undefined): Entry {
  const { taskId, worker, status, instruction, attempts, reason } = task;
  return {
    runId,
    taskId,
    worker,
    status,
    title: instruction,
    attempts,
    reason,
    group: ask ? "mine" : SETTLED.has(status) ? "settled" : "others",
    ...(ask && { askId: ask.ask_id }),
    ...(ask?.problem && { problem: ask.problem }),
    ...(reader !== undefined && { reader }),
  };
}

function fromElsewhere(ask: PersonAsk): Entry {
  return {
    runId: ask.run_id,
    taskId: taskOf(ask) ?? "",
    group: "mine",
    status: "in_review",
    worker: ask.agent_id,
    title: ask.text.split("\n", 1)[0] ?? "",
    attempts: 1,
    askId: ask.ask_id,
    reason: "",
    ...(ask.problem && { problem: ask.problem }),
  };
}
