import { expect, test } from "vitest";
import type { Recorded, WindowView } from "../api/types.ts";
import { speaker } from "../i18n/say.ts";
import { extended, loaded, received } from "./feed.ts";
import { NEW_RUN, chosenOf, fold } from "./run.ts";
import { SAMPLE, VERDICT, recorded } from "./sample.ts";

const arrived = (events: ReturnType<typeof recorded>, epoch = "a") =>
  events.map((event) => ({ id: `${epoch}-${event.seq}`, event }));

const t = speaker("en");

/** What the server answers after so many events, if it shows only the last of them. */
function windowOf(events: readonly Recorded[], last = events.length): WindowView {
  const run = events.reduce(fold, NEW_RUN);
  const shown = events.slice(-last);
  return {
    head: `a-${events.at(-1)?.seq ?? 0}`,
    state: {
      run_id: "run_1",
      status: run.status,
      flow: run.flow,
      request: run.request,
      names: run.names,
      tasks: Object.fromEntries(
        run.tasks.map((task) => [
          task.taskId,
          {
            task_id: task.taskId,
            worker: task.worker,
            instruction: task.instruction,
            status: task.status,
            attempts: task.attempts,
            reason: task.reason,
          },
        ]),
      ),
      waits_for: run.parkedFor,
      reason: run.reason,
      landed: run.landed,
    },
    summary: {
      runId: "run_1",
      flow: run.flow,
      request: run.request,
      status: run.status,
      startedMs: run.startedMs,
      endedMs: run.endedMs,
      tokens: run.tokens,
      cost: run.cost,
    },
    team: run.team,
    events: shown,
    earlier: shown.length < events.length,
  };
}

const sample = recorded(SAMPLE);
const later = recorded(VERDICT, sample.length + 1);

test("a run opened early and followed is the same as one opened late", () => {
  const step = received(loaded(windowOf(sample), t), arrived(later), t);
  expect(step).toEqual(loaded(windowOf([...sample, ...later]), t));
});

test("the last events are enough to know how a run stands", () => {
  const { run, before, items } = loaded(windowOf(sample, 4), t);
  expect(run).toEqual(loaded(windowOf(sample), t).run);
  expect(before).toBe(sample[sample.length - 4]?.seq);
  expect(items.length).toBeLessThanOrEqual(4);
});

test("earlier events are put before the others until all are there", () => {
  const whole = loaded(windowOf(sample), t);
  let feed = loaded(windowOf(sample, 2), t);
  while (feed.before !== null) {
    const { before } = feed;
    feed = extended(feed, windowOf(sample.filter(({ seq }) => seq < before), 3), t);
  }
  expect({ ...feed, opened: 0 }).toEqual({ ...whole, opened: 0 });
  expect(extended(whole, windowOf(sample), t)).toBe(whole);
});

test("what arrives twice changes nothing", () => {
  const feed = received(loaded(windowOf(sample), t), arrived(later), t);
  expect(received(feed, arrived(later), t)).toBe(feed);
  expect(received(feed, arrived(sample), t)).toBe(feed);
});

test("events of another log are left alone", () => {
  const feed = loaded(windowOf(sample), t);
  expect(received(feed, arrived(later, "b"), t)).toBe(feed);
});

const listed = (runId: string, status: "running" | "done") => ({ runId, flow: "f", request: "r", status, startedMs: 1 });

test("the page begins with what goes on, or else with the newest", () => {
  expect(chosenOf([listed("new", "done"), listed("going", "running"), listed("old", "done")])).toBe("going");
  expect(chosenOf([listed("new", "done"), listed("old", "done")])).toBe("new");
  expect(chosenOf([])).toBeNull();
});
