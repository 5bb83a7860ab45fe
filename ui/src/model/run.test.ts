import { expect, test } from "vitest";
import { NEW_RUN, fold, shownStatus, waiting } from "./run.ts";
import { SAMPLE, VERDICT, recorded } from "./sample.ts";

const after = (count: number, more = recorded([])) => [...recorded(SAMPLE).slice(0, count), ...more].reduce(fold, NEW_RUN);

test("a run that works says who works at what", () => {
  const run = after(4);
  expect(run.status).toBe("running");
  expect(waiting(run)).toEqual({ on: "agents", who: "Coder", what: "edits bucket.py", more: 0 });
});

test("a parked run waits for a person and names the command that answers", () => {
  const run = after(8);
  expect(run.status).toBe("parked");
  expect(waiting(run)).toEqual({
    on: "person",
    who: "you",
    what: "Apply t1?",
    more: 0,
  });
});

test("a task is in review until its change has landed", () => {
  expect(after(6).tasks.map((task) => task.status)).toEqual(["in_review"]);
  const verdict = recorded(VERDICT, 9);
  expect(after(8, verdict.slice(0, 3)).tasks[0]?.status).toBe("in_review");
  expect(after(8, verdict.slice(0, 4)).tasks[0]?.status).toBe("applied");
});

test.each([
  ["reject", "rejected"],
  ["revise", "revising"],
] as const)("%s makes a task %s", (decision, status) => {
  const review = recorded([
    {
      event: "proposal_reviewed",
      actor: "lead",
      provenance: "orchestrator_to_worker",
      payload: { runId: "run_1", taskId: "t1", decision },
    },
  ]);
  expect(after(6, review).tasks[0]?.status).toBe(status);
});

test("a task handed out again counts its attempts and keeps its words", () => {
  const again = recorded([
    {
      event: "task_dispatched",
      actor: "lead",
      provenance: "orchestrator_to_worker",
      payload: { taskId: "t1", workerId: "coder-1", instruction: "Mend it" },
    },
  ]);
  expect(after(6, again).tasks).toMatchObject([{ attempts: 2, instruction: "Write `bucket.py`", status: "dispatched" }]);
});

test("an ended run waits for nobody and says why it ended", () => {
  const run = after(8, recorded(VERDICT, 9));
  expect(run).toMatchObject({ status: "done", asks: [], turns: [] });
  expect(waiting(run)).toEqual({ on: "over", who: "", what: "the plan is done", more: 0 });
});

test("an interrupted run names the command that goes on", () => {
  const run = after(3, recorded([{ event: "run_interrupted", actor: "engine", provenance: "system" }]));
  expect(waiting(run).on).toBe("resume");
});

test("tokens and money add up over turns", () => {
  expect(after(8)).toMatchObject({ tokens: 1000, cost: 0.25 });
});

test("nobody works at a task of a run that is over; what waits for a verdict still waits", () => {
  expect(shownStatus("dispatched", "running")).toBe("dispatched");
  expect((["stopped", "done", "interrupted"] as const).map((run) => shownStatus("dispatched", run))).toEqual(Array(3).fill("unfinished"));
  expect(shownStatus("revising", "stopped")).toBe("unfinished");
  expect(shownStatus("in_review", "stopped")).toBe("in_review");
  expect(shownStatus("applied", "done")).toBe("applied");
});
