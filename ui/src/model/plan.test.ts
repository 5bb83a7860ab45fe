import { expect, test } from "vitest";
import { isWhole, planIn, withNewTask, withTask, withoutTask } from "./plan.ts";

const task = (task_id: string, ...after: string[]) => ({
  task_id,
  agent: "coder",
  description: `Do ${task_id}`,
  depends_on: after.map((other) => ({ task_id: other, type: "blocking" })),
});
const PLAN = { summary: "Two steps", tasks: [task("task-1"), task("task-2", "task-1")] };

test.each([null, 3, {}, { tasks: 1 }, { tasks: [{ task_id: 1 }] }, { tasks: [null] }])("%j is no plan", (data) => {
  expect(planIn(data)).toBeNull();
});

test("what is changed changes, and all else of the plan stays", () => {
  const plan = planIn(PLAN);
  if (!plan) throw new Error("it is a plan");
  expect(withTask(plan, 1, { agent: "tester" })).toEqual({
    ...PLAN,
    tasks: [PLAN.tasks[0], { ...PLAN.tasks[1], agent: "tester" }],
  });
});

test("nobody waits for a task that was taken out", () => {
  expect(withoutTask(PLAN, 0).tasks).toEqual([{ ...PLAN.tasks[1], depends_on: [] }]);
});

test("a new task has a name of its own and must be filled in", () => {
  const plan = withNewTask({ tasks: [task("task-2")] }, "coder");
  expect(plan.tasks[1]).toEqual({ task_id: "task-3", agent: "coder", description: "" });
  expect(isWhole(plan)).toBe(false);
  expect(isWhole(withTask(plan, 1, { description: "Test it" }))).toBe(true);
  expect(isWhole({ tasks: [] })).toBe(false);
});
