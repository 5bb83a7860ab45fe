import { expect, test } from "vitest";
import type { RunEvent } from "../api/types.ts";
import { type Language, speaker } from "../i18n/say.ts";
import { type Card, present } from "./items.ts";
import { SAMPLE, recorded } from "./sample.ts";

const NAMES = { lead: "Lead", "coder-1": "Coder" };

function shown(event: RunEvent | undefined, language: Language = "en") {
  const [only] = recorded(event ? [event] : []);
  if (!only) throw new Error("the sample has no such event");
  return present(only, { names: NAMES, t: speaker(language) });
}

test("a dispatched task is 🎯 from → to with its instruction", () => {
  const [, dispatch] = SAMPLE;
  expect(shown(dispatch)).toMatchObject({
    kind: "card",
    event: "task_dispatched",
    emoji: "🎯",
    title: "Lead",
    to: "Coder",
    body: "Write `bucket.py`",
  });
});

test("a proposal is 📦 with its files and tests", () => {
  expect(shown(SAMPLE[5])).toMatchObject({
    emoji: "📦",
    title: "Coder",
    to: "Orchestrator",
    facts: [{ text: "3 files changed" }, { text: "tests: 5/5 passed", tone: "ok" }],
  });
});

test.each([
  ["apply", "✅", "ok"],
  ["reject", "❌", "danger"],
  ["revise", "🔁", "warn"],
] as const)("the verdict %s is %s", (decision, emoji, tone) => {
  const card = shown({
    event: "proposal_reviewed",
    actor: "orchestrator",
    provenance: "orchestrator_to_worker",
    payload: { runId: "run_1", taskId: "t1", decision, reason: "Because" },
  });
  const title = `Orchestrator: ${decision.toUpperCase()}`;
  expect(card).toMatchObject({ decision, emoji, tone, title, body: "Because" });
});

test("checks say what they came to", () => {
  const checks = (status: string) =>
    shown({
      event: "checks_run",
      actor: "engine",
      provenance: "system",
      payload: { taskId: "t1", status, sentence: "1 of 5 fails", tests: { passed: 4, failed: 1 } },
    }) as Card;
  expect(checks("failed")).toMatchObject({ tone: "danger", title: "Checks failed" });
  expect(checks("passed").facts).toEqual([{ text: "tests: 4/5 passed", tone: "danger" }]);
  expect(checks("a word of tomorrow")).toMatchObject({ tone: "warn", title: "Checks: a word of tomorrow" });
});

test("an announcement says to whom, and holds its files in reserve", () => {
  const announce = (provenance: "announce_internal" | "announce_user") =>
    shown({
      event: "announce",
      actor: "coder-1",
      provenance,
      payload: {
        runId: "run_1",
        workerId: "coder-1",
        workerName: "Coder",
        status: "ok",
        summary: "A bucket",
        touchedFiles: ["bucket.py"],
        durationMs: 164_000,
      },
    });
  expect(announce("announce_user")).toMatchObject({ to: "You", details: { label: "Files", files: ["bucket.py"] } });
  expect(announce("announce_internal")).toMatchObject({
    to: "Orchestrator",
    facts: [{ text: "1 file" }, { text: "2m 44s" }],
  });
});

test("turns are quiet lines that keep the message", () => {
  expect(shown(SAMPLE[4])).toMatchObject({
    kind: "line",
    text: "Coder answers after 1m 12s",
    details: { label: "Message", text: "Done" },
  });
});

test("a turn that failed says why in its line", () => {
  const failed = shown({
    event: "turn_ended",
    actor: "coder-1",
    provenance: "worker_proposal",
    payload: { turnId: "u1", text: "", ok: false, reason: "the model refused the key" },
  });
  expect(failed).toMatchObject({ tone: "danger", text: "Coder failed: the model refused the key" });
});

test("a question names whom it waits for", () => {
  expect(shown(SAMPLE[6])).toMatchObject({ title: "Waiting for a verdict", to: "You", ask: "a1" });
  expect(shown(SAMPLE[6], "ko")).toMatchObject({ to: "나" });
  const parked: RunEvent = { event: "run_parked", actor: "engine", provenance: "system", payload: { person: "you", question: "?" } };
  expect([shown(parked), shown(parked, "zh")]).toMatchObject([{ text: "Paused: waiting for you" }, { text: "已暂停：等你处理" }]);
});

test("a long text is cut and can be opened", () => {
  const card = shown({
    event: "warning",
    actor: "engine",
    provenance: "system",
    payload: { sentence: "word ".repeat(400) },
  }) as Card;
  expect(card.body.length).toBeLessThan(500);
  expect(card.details).toMatchObject({ label: "Show all", text: "word ".repeat(400).trim() });
});

test("progress, and what a newer server may send, are passed over", () => {
  expect(shown(SAMPLE[3])).toBeNull();
  expect(shown({ event: "dance", actor: "x", provenance: "system" } as unknown as RunEvent)).toBeNull();
});
