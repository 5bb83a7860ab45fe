import { expect, test } from "vitest";
import type { Recorded, RunSummary } from "../api/types.ts";
import { type News, PAGE_LENGTH, type Page, emptyPage, reduce, wantsTrim } from "./page.ts";
import { SAMPLE, VERDICT, recorded } from "./sample.ts";

const told = (news: readonly News[], page = emptyPage(null)): Page => news.reduce(reduce, page);

const run = (runId: string, status: RunSummary["status"] = "running"): RunSummary => ({
  runId,
  flow: "one-coder",
  request: "Limit it",
  status,
  startedMs: 1,
});

const list = (...runs: RunSummary[]): News => ({ type: "runs", runs });
const snapshot = (events: readonly Recorded[], head = "a-8"): News => ({
  type: "snapshot",
  runId: "run_1",
  snapshot: { head, events },
});
const arrived = (events: readonly Recorded[], epoch = "a"): News => ({
  type: "arrived",
  runId: "run_1",
  events: events.map((event) => ({ id: `${epoch}-${event.seq}`, event })),
});

const seqs = (page: Page) => page.feed?.items.map((item) => item.seq);
const opened = told([list(run("run_1")), snapshot(recorded(SAMPLE))]);

test("the page opens with the run that goes on, else with the newest", () => {
  expect(told([list(run("run_2", "done"), run("run_1"))]).runId).toBe("run_1");
  expect(told([list(run("run_2", "done"), run("run_1", "stopped"))]).runId).toBe("run_2");
});

test("without a run there is nothing to follow, and the first one is followed by itself", () => {
  const empty = told([list()]);
  expect(empty).toMatchObject({ runs: [], runId: null, link: { state: "live" } });
  expect(told([list(run("run_1"))], empty).runId).toBe("run_1");
});

test("a run that was chosen stays; one that was not makes room for what goes on", () => {
  const over = [list(run("run_1", "done"))];
  const next = list(run("run_2"), run("run_1", "done"));
  expect(told([...over, next]).runId).toBe("run_2");
  expect(told([...over, { type: "chosen", runId: "run_1" }, next]).runId).toBe("run_1");
  expect(told([next], emptyPage("run_1")).runId).toBe("run_1");
});

test("what arrives twice is shown once, and what is missing in between is no matter", () => {
  const verdict = recorded(VERDICT, 9);
  const page = told([arrived(recorded(SAMPLE)), arrived(verdict.slice(0, 3)), arrived(verdict)], opened);
  expect(seqs(page)).toEqual([...(seqs(opened) ?? []), 9, 10, 11, 12, 13]);
  expect(page.feed?.run.status).toBe("done");
});

test("a snapshot may hold later events than its head says; they are not shown again", () => {
  const page = told([list(run("run_1")), snapshot(recorded(SAMPLE), "a-5"), arrived(recorded(SAMPLE))]);
  expect(seqs(page)).toEqual(seqs(opened));
});

test("events of another log or another run change nothing", () => {
  const verdict = recorded(VERDICT, 9);
  expect(told([arrived(verdict, "b")], opened)).toEqual(opened);
  expect(told([{ ...arrived(verdict), runId: "run_0" } as News], opened)).toBe(opened);
});

test("a new snapshot begins anew", () => {
  const page = told([snapshot(recorded(SAMPLE).slice(0, 2), "b-2")], opened);
  expect(seqs(page)).toEqual([1, 2]);
  expect(page.feed?.cursor).toEqual({ epoch: "b", seq: 2 });
});

test("a long run is drawn from its end, and more on demand", () => {
  const line = { event: "run_resumed", actor: "engine", provenance: "system" } as const;
  const events = recorded(Array.from({ length: 1000 }, () => line));
  const page = told([list(run("run_1")), snapshot(events, "a-1000")]);
  expect(page.feed?.from).toBe(1000 - PAGE_LENGTH);
  const earlier = told([{ type: "earlier" }, { type: "earlier" }], page);
  expect(earlier.feed?.from).toBe(1000 - 3 * PAGE_LENGTH);
  expect(earlier.feed && wantsTrim(earlier.feed)).toBe(true);
  expect(told([{ type: "trim" }], earlier).feed?.from).toBe(1000 - PAGE_LENGTH);
});

test("losing the list matters only while no run is followed, or to say why its feed was lost", () => {
  const lost: News = { type: "listLost", reason: "not let in", retryMs: 3000 };
  expect(told([lost]).link.state).toBe("lost");
  expect(told([lost], opened).link).toEqual(opened.link);
  const cut: News = { type: "link", link: { state: "lost", retryMs: 1000, reason: "was cut" } };
  expect(told([cut, lost], opened).link).toEqual({ state: "lost", retryMs: 1000, reason: "not let in" });
});
