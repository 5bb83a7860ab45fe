// What an agent said and did, put together for reading: a tool's call and its result are one block,
// words that follow each other are one block, and lines nobody understood are kept apart.

import type { TranscriptEntry, Usage } from "../api/types.ts";

export type Block =
  | { readonly kind: "text" | "thinking" | "raw"; readonly seq: number; readonly ts: number; readonly text: string }
  | {
      readonly kind: "tool";
      readonly seq: number;
      readonly ts: number;
      readonly name: string;
      /** The command, or the most telling part of the input, in one line. */
      readonly gist: string;
      readonly input: string;
      readonly output: string | null;
      readonly exitCode: number | null;
      readonly failed: boolean;
    }
  | { readonly kind: "note"; readonly seq: number; readonly ts: number; readonly text: string; readonly tone: "muted" | "warn" | "danger" | "ok" };

export interface Talk {
  readonly blocks: readonly Block[];
  readonly last: number;
  readonly input: number;
  readonly output: number;
  readonly cost: number;
  readonly model: string;
}

export const NO_TALK: Talk = { blocks: [], last: 0, input: 0, output: 0, cost: 0, model: "" };

/** The talk after these entries; those that are known already change nothing. */
export function heard(talk: Talk, entries: readonly TranscriptEntry[]): Talk {
  const fresh = entries.filter((entry) => entry.seq > talk.last);
  if (fresh.length === 0) return talk;
  const blocks = [...talk.blocks];
  let next: Talk = { ...talk, blocks, last: fresh.at(-1)?.seq ?? talk.last };
  for (const entry of fresh) {
    add(blocks, entry);
    if (entry.event.type === "usage") next = charged(next, entry.event.usage);
  }
  return next;
}

function add(blocks: Block[], { seq, event }: TranscriptEntry): void {
  const at = { seq, ts: event.ts };
  switch (event.type) {
    case "text":
    case "thinking":
    case "raw": {
      const text = event.type === "raw" ? event.line : event.text;
      const before = blocks.at(-1);
      const isMore = before?.kind === event.type && (before.kind === "raw" || before.kind === "thinking");
      if (isMore) blocks[blocks.length - 1] = { ...before, text: `${before.text}\n${text}` };
      else blocks.push({ kind: event.type, ...at, text });
      return;
    }
    case "tool_call":
      blocks.push({
        kind: "tool",
        ...at,
        name: event.name,
        gist: gistOf(event.input),
        input: shown(event.input),
        output: null,
        exitCode: null,
        failed: false,
        ...(event.callId !== undefined && { callId: event.callId }),
      });
      return;
    case "tool_result": {
      const { output, callId, exitCode, failed = false } = event;
      const text = typeof output === "string" ? output : `${output.media}, ${output.size} bytes, ${output.sha256}`;
      const call = blocks.findLastIndex(
        (block) => block.kind === "tool" && block.output === null && (callId === undefined || callIdOf(block) === callId),
      );
      const result = { output: text, exitCode: exitCode ?? null, failed: failed || (exitCode ?? 0) !== 0 };
      const known = blocks[call];
      if (known?.kind === "tool") blocks[call] = { ...known, ...result };
      else blocks.push({ kind: "tool", ...at, name: "", gist: "", input: "", ...result });
      return;
    }
    case "file_change":
      blocks.push({ kind: "note", ...at, text: `${event.status}: ${event.path}`, tone: "muted" });
      return;
    case "session":
      blocks.push({ kind: "note", ...at, text: [event.model, event.sessionId].filter(Boolean).join(" · "), tone: "muted" });
      return;
    case "retry":
      blocks.push({ kind: "note", ...at, text: `#${event.attempt}: ${event.reason}`, tone: "warn" });
      return;
    case "error":
      blocks.push({ kind: "note", ...at, text: `${event.class}: ${event.message}`, tone: "danger" });
      return;
    case "result": {
      const before = blocks.findLast((block) => block.kind === "text" || block.kind === "thinking");
      if (before?.kind === "text" && before.text.trim() === event.text.trim() || !event.text.trim()) return;
      blocks.push({ kind: "text", ...at, text: event.text });
      return;
    }
    default:
      return;
  }
}

const callIdOf = (block: Block): string | undefined => (block as { callId?: string }).callId;

function charged(talk: Talk, usage: Usage): Talk {
  return {
    ...talk,
    input: talk.input + (usage.inputTokens ?? 0),
    output: talk.output + (usage.outputTokens ?? 0),
    cost: talk.cost + (usage.cost ?? 0),
    model: usage.model ?? talk.model,
  };
}

const TELLING = ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description"];

function gistOf(input: unknown): string {
  if (typeof input === "string") return firstLine(input);
  if (typeof input !== "object" || input === null) return "";
  const known = input as Readonly<Record<string, unknown>>;
  for (const name of TELLING) {
    const value = known[name];
    if (typeof value === "string" && value) return firstLine(value);
    if (Array.isArray(value) && value.length) return firstLine(value.join(" "));
  }
  return "";
}

function shown(input: unknown): string {
  if (input === undefined) return "";
  return typeof input === "string" ? input : JSON.stringify(input, null, 2);
}

const firstLine = (text: string): string => text.trim().split("\n", 1)[0] ?? "";
