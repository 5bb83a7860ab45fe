import { expect, test } from "vitest";
import { loaded, received } from "./feed.ts";
import { chosenOf } from "./run.ts";
import { SAMPLE, VERDICT, recorded } from "./sample.ts";

const arrived = (events: ReturnType<typeof recorded>, epoch = "a") =>
  events.map((event) => ({ id: `${epoch}-${event.seq}`, event }));

const snapshot = { head: "a-8", events: recorded(SAMPLE) };

test("a snapshot and what comes after it make the same as all at once", () => {
  const later = recorded(VERDICT, 9);
  const step = received(loaded(snapshot), arrived(later));
  expect(step).toEqual(loaded({ head: `a-${8 + later.length}`, events: [...recorded(SAMPLE), ...later] }));
});

test("what arrives twice changes nothing", () => {
  const feed = received(loaded(snapshot), arrived(recorded(VERDICT, 9)));
  expect(received(feed, arrived(recorded(VERDICT, 9)))).toBe(feed);
  expect(received(feed, arrived(recorded(SAMPLE)))).toBe(feed);
});

test("events of another log are left alone", () => {
  const feed = loaded(snapshot);
  expect(received(feed, arrived(recorded(VERDICT, 9), "b"))).toBe(feed);
});

test("a snapshot may hold events that are later than its head", () => {
  const feed = loaded({ head: "a-3", events: recorded(SAMPLE) });
  expect(feed.cursor).toEqual({ epoch: "a", seq: 8 });
});

const run = (runId: string, status: "running" | "done") => ({ runId, flow: "f", request: "r", status, startedMs: 1 });

test("the page begins with what goes on, or else with the newest", () => {
  expect(chosenOf([run("new", "done"), run("going", "running"), run("old", "done")])).toBe("going");
  expect(chosenOf([run("new", "done"), run("old", "done")])).toBe("new");
  expect(chosenOf([])).toBeNull();
});
