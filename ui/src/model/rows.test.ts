import { expect, test } from "vitest";
import { speaker } from "../i18n/say.ts";
import { type Item, present } from "./items.ts";
import { NO_FILTER, type Filter, isFiltering, rowAt, rowsOf } from "./rows.ts";
import { NEW_RUN, type TaskView, fold } from "./run.ts";
import { SAMPLE, VERDICT, recorded } from "./sample.ts";

const events = recorded([...SAMPLE, ...VERDICT]);
const run = events.reduce(fold, NEW_RUN);
const items = events
  .map((event) => present(event, { names: run.names, t: speaker("en") }))
  .filter((item) => item !== null);

const rows = (filter: Partial<Filter>) => rowsOf(items, { ...NO_FILTER, ...filter }, run);
const kinds = (filter: Partial<Filter>) =>
  rows(filter).map((row) => (row.kind === "task" ? `#${row.taskId}` : row.item.event));

test("without a filter everything is there, in order", () => {
  expect(rows({}).map((row) => row.key)).toEqual(items.map((item) => String(item.seq)));
  expect(isFiltering(NO_FILTER)).toBe(false);
});

test("a kind shows its own only", () => {
  expect(new Set(kinds({ kind: "reviews" }))).toEqual(new Set(["proposal_reviewed"]));
  expect(kinds({ kind: "problems" })).toEqual([]);
});

test("an agent and a source narrow it down together", () => {
  const shown = rows({ agent: "coder-1", provenance: "worker_proposal" });
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.every((row) => row.kind === "item" && row.item.actor === "coder-1")).toBe(true);
  expect(rows({ agent: "lead", provenance: "worker_proposal" })).toEqual([]);
});

test("each word of a search must be found, anywhere in what is shown", () => {
  expect(kinds({ search: "WRITE bucket.py" })).toEqual(["task_dispatched"]);
  expect(rows({ search: "please it write" })).toHaveLength(1);
  expect(rows({ search: "nowhere" })).toEqual([]);
});

test("by task, each task has one heading, and what is folded is counted but not shown", () => {
  const open = kinds({ byTask: true });
  expect(open.filter((kind) => kind.startsWith("#"))).toEqual(["#", "#t1"]);
  const [, folded] = rows({ byTask: true, folded: new Set(["", "t1"]) });
  expect(folded).toMatchObject({ kind: "task", taskId: "t1", folded: true, status: run.tasks[0]?.status });
  expect(folded?.kind === "task" && folded.count).toBeGreaterThan(3);
});

test("a time leads to the first row at or after it", () => {
  const [first] = items;
  const clock = new Date((first?.ts ?? 0) + 3000);
  const text = [clock.getHours(), clock.getMinutes(), clock.getSeconds()].map((part) => String(part).padStart(2, "0"));
  const found = rowAt(rows({}), text.join(":"));
  expect(items[found ?? -1]?.ts).toBeGreaterThanOrEqual(clock.getTime());
  expect(items[(found ?? 0) - 1]?.ts).toBeLessThan(clock.getTime());
  expect(rowAt(rows({}), "noon")).toBeNull();
  expect(rowAt([], "10:00")).toBeNull();
});

test("what a reviewer is asked stands under the task it is about, of two with like names the nearer", () => {
  const turn = (taskId: string) => ({ ...items[0], kind: "line", task: taskId }) as Item;
  const tasks = ["wrap", "wrap-2"].map((taskId) => ({ ...run.tasks[0], taskId }) as TaskView);
  const turns = ["review-wrap", "review-wrap-2", "review-wrap-2-2", "review-wrap-3", "review-other"].map(turn);
  const headings = rowsOf(turns, { ...NO_FILTER, byTask: true }, { tasks, status: "done" }).filter((row) => row.kind === "task");
  expect(headings.map(({ taskId, count }) => [taskId, count])).toEqual([["wrap", 2], ["wrap-2", 2], ["review-other", 1]]);
});
