import { expect, test } from "vitest";
import type { TranscriptEntry } from "../api/types.ts";
import { NO_TALK, heard } from "./transcript.ts";

type Said = TranscriptEntry["event"] extends infer Event ? (Event extends unknown ? Omit<Event, "ts" | "seq"> : never) : never;

const entries = (...events: Said[]): TranscriptEntry[] =>
  events.map((event, index) => ({
    seq: index + 10,
    agent: "coder",
    event: { ...event, ts: index, seq: index },
  }));

test("a command and what came of it are one block with its exit code", () => {
  const { blocks } = heard(
    NO_TALK,
    entries(
      { type: "tool_call", name: "bash", callId: "1", input: { command: "pytest -q\n# all" } },
      { type: "tool_call", name: "read", callId: "2", input: { path: "a.py" } },
      { type: "tool_result", callId: "1", output: "1 failed", exitCode: 1 },
      { type: "tool_result", callId: "2", output: "text" },
    ),
  );
  expect(blocks).toMatchObject([
    { kind: "tool", name: "bash", gist: "pytest -q", output: "1 failed", exitCode: 1, failed: true },
    { kind: "tool", name: "read", gist: "a.py", output: "text", exitCode: null, failed: false },
  ]);
});

test("a result whose call nobody saw is shown by itself", () => {
  expect(heard(NO_TALK, entries({ type: "tool_result", callId: "9", output: "late" })).blocks).toMatchObject([
    { kind: "tool", name: "", output: "late" },
  ]);
});

test("lines nobody understood are one block, and so are thoughts", () => {
  const { blocks } = heard(
    NO_TALK,
    entries({ type: "raw", line: "a" }, { type: "raw", line: "b" }, { type: "thinking", text: "hm" }, { type: "thinking", text: "ah" }),
  );
  expect(blocks).toMatchObject([
    { kind: "raw", text: "a\nb" },
    { kind: "thinking", text: "hm\nah" },
  ]);
});

test("final words that were said before are not said again", () => {
  const said = entries({ type: "text", text: "Done. " }, { type: "result", text: "Done." }, { type: "result", text: "And more" });
  expect(heard(NO_TALK, said).blocks).toMatchObject([{ text: "Done. " }, { text: "And more" }]);
});

test("what is told twice counts once", () => {
  const said = entries({ type: "usage", usage: { inputTokens: 5, outputTokens: 2, cost: 0.1, model: "m" } });
  const talk = heard(NO_TALK, said);
  expect(talk).toMatchObject({ input: 5, output: 2, cost: 0.1, model: "m" });
  expect(heard(talk, said)).toBe(talk);
});
