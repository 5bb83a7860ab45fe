// A small run, told as the server tells it, for the tests of the model.

import type { Recorded, RunEvent } from "../api/types.ts";

const started = Date.UTC(2026, 10, 16, 14, 2, 0);

export function recorded(events: readonly RunEvent[], first = 1): readonly Recorded[] {
  return events.map((event, index) => ({ ...event, seq: first + index, ts: started + 1000 * index, runId: "run_1" }));
}

const engine = { actor: "engine", provenance: "system" } as const;

export const SAMPLE: readonly RunEvent[] = [
  {
    ...engine,
    event: "run_started",
    payload: {
      flow: "one-coder",
      request: "Limit the public API",
      team: [
        { id: "lead", name: "Lead", role: "orchestrator" },
        { id: "coder-1", name: "Coder", role: "worker" },
      ],
    },
  },
  {
    event: "task_dispatched",
    actor: "lead",
    provenance: "orchestrator_to_worker",
    payload: { taskId: "t1", workerId: "coder-1", instruction: "Write `bucket.py`" },
  },
  {
    ...engine,
    event: "turn_started",
    payload: { turnId: "u1", to: "coder-1", messageId: "m1", text: "Please write it", taskId: "t1" },
  },
  { ...engine, event: "turn_progress", payload: { turnId: "u1", step: "edits bucket.py", taskId: "t1" } },
  {
    event: "turn_ended",
    actor: "coder-1",
    provenance: "worker_proposal",
    usage: { inputTokens: 900, outputTokens: 100, cost: 0.25 },
    payload: {
      turnId: "u1",
      text: "Done",
      durationMs: 72_000,
      taskId: "t1",
      charge: { tokens: 1000, cost: 0.25 },
    },
  },
  {
    event: "proposal_submitted",
    actor: "coder-1",
    provenance: "worker_proposal",
    payload: { taskId: "t1", changedFiles: 3, summary: "A bucket", tests: { passed: 5, failed: 0 } },
  },
  {
    ...engine,
    event: "person_asked",
    payload: { askId: "a1", person: "you", question: "Apply t1?\nIt is green.", scope: "review:t1", taskId: "t1" },
  },
  { ...engine, event: "run_parked", payload: { person: "you", question: "Apply t1?" } },
];

export const VERDICT: readonly RunEvent[] = [
  { event: "person_answered", actor: "you", provenance: "user_input", payload: { askId: "a1", person: "you" } },
  { ...engine, event: "run_resumed" },
  {
    event: "proposal_reviewed",
    actor: "you",
    provenance: "user_input",
    payload: { runId: "run_1", taskId: "t1", decision: "apply", reason: "Reads well" },
  },
  { ...engine, event: "proposal_applied", payload: { taskId: "t1", files: ["bucket.py"] } },
  { ...engine, event: "run_ended", payload: { reason: "the plan is done", done: true } },
];
