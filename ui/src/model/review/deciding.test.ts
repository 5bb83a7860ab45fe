import { expect, test } from "vitest";
import type { CheckResult, PersonAsk, Recorded, ShownProposal } from "../../api/types.ts";
import { NEW_RUN, type RunView, type TaskView } from "../run.ts";
import { withoutStyles } from "./ansi.ts";
import { type Node, tokensOf } from "./colours.ts";
import { isPicture, languageOf } from "./language.ts";
import { queueOf } from "./queue.ts";
import { overlapsOf } from "./standing.ts";
import { trailOf } from "./trail.ts";
import { objections, openFindings, standing } from "./verdict.ts";

const PROPOSAL: ShownProposal = {
  runId: "run_1",
  taskId: "t1",
  proposalId: "t1.r0",
  attempt: 1,
  worker: "coder",
  status: "waiting",
  generation: 0,
  createdAt: "2026-02-19T10:00:00Z",
  evidenceStatus: "passed",
};
const WORDS = { reason: "because", comments: 0, chosen: 1 };
const SILENT = { reason: "  ", comments: 0, chosen: 1 };
const red = { check: { name: "unit", command: "x" }, before: null, after: { passed: false, exitCode: 1 } };

test("a sound change is applied without a word", () => {
  expect(standing("apply", objections(PROPOSAL, 1), SILENT)).toEqual({ state: "ready" });
});

test("rejecting and sending back need words, or comments that say them", () => {
  for (const decision of ["reject", "revise"] as const) {
    expect(standing(decision, [], SILENT)).toEqual({ state: "reason" });
    expect(standing(decision, [], WORDS)).toEqual({ state: "ready" });
    expect(standing(decision, [], { ...SILENT, comments: 1 })).toEqual({ state: "ready" });
  }
});

test("red checks and open must-fix findings ask whoever applies for a reason", () => {
  const critical = { severity: "critical", description: "leaks" } as const;
  const bad = {
    ...PROPOSAL,
    evidenceStatus: "failed",
    evidence: { generation: "g0", checks: [red] },
    reviews: [{ by: "critic", decision: "revise", findings: [{ severity: "minor" }, critical] } as const],
  };
  const found = objections(bad, 1);
  expect(found).toEqual([{ kind: "red", checks: ["unit"] }, { kind: "mustFix", count: 1, first: "leaks" }]);
  expect(standing("apply", found, SILENT)).toEqual({ state: "reason" });
  expect(standing("apply", found, { ...SILENT, comments: 3 })).toEqual({ state: "reason" });
  expect(standing("apply", found, WORDS)).toEqual({ state: "ready" });
});

test("what was red and fails more or in another way asks for a reason, the same failures do not", () => {
  const failing = (failed: number, exitCode = 1) => ({ passed: false, exitCode, tests: { passed: 9 - failed, failed } });
  const after = (before: CheckResult, now: CheckResult) =>
    objections({ ...PROPOSAL, evidenceStatus: "red_before", evidence: { generation: "g0", checks: [{ ...red, before, after: now }] } }, 1);
  expect(after(failing(2), failing(2, 2))).toEqual([]);
  expect(after(failing(2), failing(3))).toEqual([{ kind: "red", checks: ["unit"] }]);
  expect(after(failing(2), { passed: false, exitCode: 1 })).toHaveLength(1);
  expect(after({ passed: false, exitCode: 1 }, { passed: false, exitCode: 2 })).toHaveLength(1);
});

test("what is unsafe, in conflict or empty is not applied, whatever is said", () => {
  const unsafe = { ...PROPOSAL, breaches: [{ kind: "outside_scope", path: "a", detail: "is outside" } as const] };
  const clashing = { ...PROPOSAL, outlook: { proposalId: "t1.r0", fitness: "conflicts", conflicts: [{ kind: "both_changed", path: "a", detail: "" }] } as const };
  expect(standing("apply", objections(unsafe, 1), WORDS)).toMatchObject({ state: "blocked", by: { kind: "unsafe" } });
  expect(standing("apply", objections(clashing, 1), WORDS)).toEqual({ state: "blocked", by: { kind: "conflicts", detail: "a" } });
  expect(standing("apply", objections(PROPOSAL, 0), WORDS)).toEqual({ state: "blocked", by: { kind: "nothing" } });
  expect(standing("reject", objections(unsafe, 1), WORDS)).toEqual({ state: "ready" });
});

test("findings are those of the last who had any, the worst first, without what was mended", () => {
  const reviews = [
    { by: "a", decision: "revise", findings: [{ severity: "critical", description: "old" }] },
    { by: "b", decision: "revise", findings: [{ severity: "suggestion" }, { severity: "major" }, { severity: "critical", fixed_in_iteration: 2 }] },
    { by: "c", decision: "apply" },
  ] as const;
  expect(openFindings({ ...PROPOSAL, reviews }).map(({ severity }) => severity)).toEqual(["major", "suggestion"]);
});

test("overlaps name the other task, leave out what merges, and the run only when it is another", () => {
  const shared = { kind: "same_lines", proposals: ["run_1/t1.r0", "run_1/t2.r1", "run_2/t9.r0"] } as const;
  const overlaps = [{ ...shared, path: "a" }, { ...shared, path: "b", proposals: ["run_1/t1.r0", "run_1/t2.r1"] }, { ...shared, path: "c", kind: "same_file" as const }];
  const found = overlapsOf({ ...PROPOSAL, overlaps });
  expect(found.others).toEqual(["t2", "run_2/t9"]);
  expect([found.files("t2"), found.files("run_2/t9")]).toEqual([2, 1]);
});

const task = (taskId: string, status: TaskView["status"], attempts = 1): TaskView => ({ taskId, worker: "coder", instruction: taskId, status, attempts, reason: "" });
const ask = (run_id: string, scope: string): PersonAsk => ({ ask_id: `${run_id}/${scope}`, person: "you", run_id, agent_id: "coder", scope, text: "Apply it?\nmore" });

test("the queue puts what waits for you first, from every run, and what is settled last", () => {
  const run: RunView = {
    ...NEW_RUN,
    tasks: [task("done", "applied"), task("new", "dispatched"), task("read", "in_review"), task("mine", "in_review"), task("no", "rejected"), task("again", "dispatched", 2)],
    turns: [{ turnId: "x", agent: "critic", taskId: "review-read-2", step: "" }],
  };
  const queue = queueOf(run, "run_1", [ask("run_1", "review:mine"), ask("run_2", "review:far"), ask("run_2", "plan:work")]);
  expect(queue.map(({ runId, taskId, group }) => [runId, taskId, group])).toEqual([
    ["run_1", "mine", "mine"],
    ["run_2", "far", "mine"],
    ["run_1", "read", "others"],
    ["run_1", "again", "others"],
    ["run_1", "no", "settled"],
    ["run_1", "done", "settled"],
  ]);
  expect(queue.find(({ taskId }) => taskId === "read")?.reader).toBe("critic");
  expect(queueOf(null, null, [])).toEqual([]);
});

test("the trail tells one task from its first word to its undoing, by attempt", () => {
  const event = (seq: number, name: string, payload: object): Recorded =>
    ({ seq, ts: seq, runId: "r", actor: "a", provenance: "system", event: name, payload }) as unknown as Recorded;
  const marks = trailOf(
    [
      event(1, "task_dispatched", { taskId: "t1", workerId: "coder", instruction: "do it" }),
      event(2, "turn_started", { taskId: "t1", to: "coder", turnId: "x", text: "do it" }),
      event(3, "proposal_submitted", { taskId: "t1", summary: "did" }),
      event(4, "proposal_submitted", { taskId: "t2", summary: "not this one" }),
      event(5, "proposal_reviewed", { taskId: "t1", decision: "revise", reason: "again" }),
      event(6, "proposal_submitted", { taskId: "t1", summary: "better" }),
      event(7, "proposal_applied", { taskId: "t1", files: ["a"] }),
      event(8, "proposal_undone", { taskId: "t1", files: ["a"] }),
    ],
    "t1",
  );
  expect(marks.map(({ kind, attempt }) => `${kind} ${attempt}`)).toEqual(["task 1", "message 1", "proposal 1", "verdict 1", "proposal 2", "applied 2", "undone 2"]);
});

test("colours are cut at the ends of lines, the inner one wins", () => {
  const text = (value: string): Node => ({ type: "text", value });
  const span = (name: string, ...children: Node[]): Node => ({ type: "element", properties: { className: [name] }, children });
  const tree: Node = { type: "root", children: [text("a "), span("hljs-string", text("'x\ny"), span("hljs-number", text("7"))), span("unknown", text("z"))] };
  expect(tokensOf(tree, 2)).toEqual([
    [{ start: 2, end: 4, colour: "str" }],
    [{ start: 0, end: 1, colour: "str" }, { start: 1, end: 2, colour: "num" }],
  ]);
});

test("languages and pictures are known by their names, and a name may be anything", () => {
  expect(["a/b.PY", "Makefile", "x.constructor", "constructor", "noend"].map(languageOf)).toEqual(["python", "makefile", "", "", ""]);
  expect([isPicture("a.PNG"), isPicture("a.svg"), isPicture("png")]).toEqual([true, false, true]);
});

test("output loses its colours and keeps every other control, to be shown", () => {
  expect(withoutStyles("\u001b[1;31mred\u001b[0m\r\n\u001b]0;title\u0007\u001b[2J")).toBe("red\n\u001b]0;title\u0007\u001b[2J");
});
