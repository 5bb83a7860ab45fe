// How a run stands: a fold over its events, the page's twin of runs/state.py. The server is the
// judge of what may follow what; here an event is taken as it comes.

import type { Member, PersonAsked, Recorded, RunStatus, RunSummary, TaskStatus } from "../api/types.ts";
import { type Names, nameOf } from "./words.ts";

export interface TaskView {
  readonly taskId: string;
  readonly worker: string;
  readonly instruction: string;
  readonly status: TaskStatus;
  readonly attempts: number;
  /** Why it was sent back, rejected or has failed. */
  readonly reason: string;
}

export interface TurnView {
  readonly turnId: string;
  readonly agent: string;
  readonly taskId: string;
  readonly step: string;
}

export interface RunView {
  readonly status: RunStatus;
  readonly flow: string;
  readonly request: string;
  readonly team: readonly Member[];
  readonly names: Names;
  readonly tasks: readonly TaskView[];
  readonly turns: readonly TurnView[];
  readonly asks: readonly PersonAsked[];
  readonly parkedFor: string;
  readonly reason: string;
  /** Files of this run that are in the workspace. */
  readonly landed: readonly string[];
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly tokens: number;
  readonly cost: number;
  /** Whether part of it is by a price table, since somebody told tokens only. */
  readonly usageIsEstimate: boolean;
}

export const NEW_RUN: RunView = {
  status: "new",
  flow: "",
  request: "",
  team: [],
  names: {},
  tasks: [],
  turns: [],
  asks: [],
  parkedFor: "",
  reason: "",
  landed: [],
  startedMs: 0,
  endedMs: null,
  tokens: 0,
  cost: 0,
  usageIsEstimate: false,
};

export function fold(view: RunView, event: Recorded): RunView {
  return after(charged(view, event), event);
}

function after(view: RunView, event: Recorded): RunView {
  switch (event.event) {
    case "run_started": {
      const { flow, request, team } = event.payload;
      const names = Object.fromEntries(team.map((member) => [member.id, member.name]));
      return { ...view, status: "running", flow, request, team, names, startedMs: event.ts };
    }
    case "run_parked":
      return { ...view, status: "parked", parkedFor: `${event.payload.person}: ${event.payload.question}` };
    case "run_interrupted":
      return { ...view, status: "interrupted", turns: [] };
    case "run_resumed":
      return { ...view, status: "running", parkedFor: "", reason: "", endedMs: null };
    case "run_ended": {
      const status = event.payload.done ? "done" : "stopped";
      return { ...view, status, reason: event.payload.reason, parkedFor: "", turns: [], asks: [], endedMs: event.ts };
    }
    case "turn_started": {
      const { turnId, to, taskId = "" } = event.payload;
      const turn = { turnId, agent: to, taskId, step: "" };
      return { ...view, turns: [...view.turns.filter((known) => known.turnId !== turnId), turn] };
    }
    case "turn_progress": {
      const { turnId, step = "" } = event.payload;
      return { ...view, turns: view.turns.map((turn) => (turn.turnId === turnId ? { ...turn, step } : turn)) };
    }
    case "turn_ended":
      return { ...view, turns: view.turns.filter((turn) => turn.turnId !== event.payload.turnId) };
    case "person_asked": {
      const ask = event.payload;
      return { ...view, asks: [...view.asks.filter((known) => known.askId !== ask.askId), ask] };
    }
    case "person_answered":
      return { ...view, asks: view.asks.filter((ask) => ask.askId !== event.payload.askId) };
    case "task_dispatched":
      return dispatched(view, event.payload);
    case "proposal_submitted":
      return withTask(view, event.payload.taskId, "in_review");
    case "proposal_reviewed":
      return withTask(view, event.payload.taskId, reviewed(event.payload), event.payload.reason ?? "");
    case "task_failed":
      return withTask(view, event.payload.taskId, "failed", event.payload.reason);
    case "task_answered":
      return withTask(view, event.payload.taskId, "answered");
    case "proposal_applied":
      return {
        ...withTask(view, event.payload.taskId, "applied"),
        landed: [...new Set([...view.landed, ...event.payload.files])],
      };
    case "proposal_undone": {
      const { taskId, files } = event.payload;
      return { ...withTask(view, taskId, "undone"), landed: view.landed.filter((file) => !files.includes(file)) };
    }
    default:
      return view;
  }
}

function reviewed(review: { decision: string; appliedAt?: number | null }): TaskStatus {
  if (review.appliedAt != null) return "applied";
  if (review.decision === "revise") return "revising";
  // An accepted change has landed only when proposal_applied says so.
  return review.decision === "reject" ? "rejected" : "in_review";
}

function dispatched(view: RunView, task: { taskId: string; workerId: string; instruction: string }): RunView {
  const { taskId, workerId, instruction } = task;
  const known = view.tasks.find((other) => other.taskId === taskId);
  if (!known) {
    const fresh: TaskView = { taskId, worker: workerId, instruction, status: "dispatched", attempts: 1, reason: "" };
    return { ...view, tasks: [...view.tasks, fresh] };
  }
  const again: TaskView = { ...known, worker: workerId, status: "dispatched", attempts: known.attempts + 1 };
  return { ...view, tasks: view.tasks.map((other) => (other === known ? again : other)) };
}

function withTask(view: RunView, taskId: string, status: TaskStatus, reason?: string): RunView {
  const change = { status, ...(reason !== undefined && { reason }) };
  return { ...view, tasks: view.tasks.map((task) => (task.taskId === taskId ? { ...task, ...change } : task)) };
}

/** What a turn was charged, as the server counts it: told by the agent, or guessed. */
function charged(view: RunView, event: Recorded): RunView {
  const charge = event.event === "turn_ended" ? event.payload.charge : null;
  if (!charge) return view;
  const usageIsEstimate = view.usageIsEstimate || charge.estimated === true;
  return { ...view, tokens: view.tokens + charge.tokens, cost: view.cost + charge.cost, usageIsEstimate };
}

export const isOver = (status: RunStatus): boolean => status === "done" || status === "stopped";

/** The task that a reviewer's own is about: that is named for it, with a number when asked again. */
export function taskBehind(taskId: string, isTask: (id: string) => boolean): string {
  const about = /^review-(.*?)(-\d+)?$/s.exec(taskId);
  if (!about || isTask(taskId)) return taskId;
  const [, name = "", again = ""] = about;
  return [name + again, name].find(isTask) ?? taskId;
}

/** Whether something is still to become of a task. */
export const isOpen = (status: TaskStatus): boolean => status === "dispatched" || status === "in_review" || status === "revising";

/** What is said of a task: nobody works at it any more where the run does not go on. */
export const shownStatus = (task: TaskStatus, run: RunStatus): TaskStatus | "unfinished" =>
  (isOver(run) || run === "interrupted") && (task === "dispatched" || task === "revising") ? "unfinished" : task;

export interface Waiting {
  readonly on: "person" | "agents" | "engine" | "resume" | "over";
  readonly who: string;
  readonly what: string;
  /** How many others besides. */
  readonly more: number;
}

/** The one line that says whom the run waits for (D25). */
export function waiting(view: RunView): Waiting {
  if (isOver(view.status)) return { on: "over", who: "", what: firstLine(view.reason), more: 0 };
  if (view.status === "interrupted") return { on: "resume", who: "", what: "", more: 0 };
  const ask = view.asks[0];
  if (ask) return { on: "person", who: ask.person, what: firstLine(ask.question), more: view.asks.length - 1 };
  if (view.status === "parked") {
    const [who = "", ...rest] = view.parkedFor.split(": ");
    return { on: "person", who, what: firstLine(rest.join(": ")), more: 0 };
  }
  const turn = view.turns.at(-1);
  if (!turn) return { on: "engine", who: "", what: "", more: 0 };
  const more = view.turns.length - 1;
  return { on: "agents", who: nameOf(view.names, turn.agent), what: turn.step || turn.taskId, more };
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}

/** The run to show when nobody has asked for one: what goes on, or else the newest. */
export function chosenOf(runs: readonly RunSummary[]): string | null {
  return (runs.find((run) => !isOver(run.status)) ?? runs[0])?.runId ?? null;
}
