// How numbers, times and names are said.

import { plain } from "./plain.ts";

export type Names = Readonly<Record<string, string>>;

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const moment = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const clockTime = (ms: number): string => time.format(ms);
export const dayAndTime = (ms: number): string => moment.format(ms);
export const grouped = (value: number): string => number.format(value);
export const short = (value: number): string => compact.format(value);
/** A cent is the least that is worth a number. */
export const dollars = (value: number): string => (value > 0 && value < 0.01 ? "<$0.01" : `$${value.toFixed(2)}`);
/** A figure that is partly guessed says so. */
export const about = (figure: string, isEstimate: boolean): string =>
  isEstimate && !figure.startsWith("<") ? `≈ ${figure}` : figure;

export function plural(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${String(seconds % 60).padStart(2, "0")}s`;
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, "0")}m`;
}

/** Whether an id is that of the person at the page. */
export const isYou = (id: string): boolean => id === "you" || id === "person:you";

/** What people call an agent; without a name its id, capitalised. */
export function nameOf(names: Names, id: string): string {
  const bare = id.startsWith("person:") ? id.slice("person:".length) : id;
  return plain(names[id] ?? bare.charAt(0).toUpperCase() + bare.slice(1));
}

const ENOUGH_LETTERS = 420;
const ENOUGH_LINES = 7;

/** The beginning of a text, and the whole of it only when the beginning leaves something out. */
export function clipped(text: string): { readonly start: string; readonly whole?: string } {
  const trimmed = text.trim();
  const lines = trimmed.split("\n").slice(0, ENOUGH_LINES).join("\n");
  const start = lines.length > ENOUGH_LETTERS ? `${lines.slice(0, ENOUGH_LETTERS).trimEnd()}…` : lines;
  if (start === trimmed) return { start };
  return { start: start.endsWith("…") ? start : `${start} …`, whole: trimmed };
}

/** Splits at fenced blocks, which are set as they are; one that nobody closes goes on to the end. */
export function fenced(text: string): readonly { readonly isCode: boolean; readonly text: string }[] {
  const parts: { isCode: boolean; lines: string[]; fence: string }[] = [{ isCode: false, lines: [], fence: "" }];
  for (const line of text.split("\n")) {
    const last = parts.at(-1);
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (!last?.isCode && fence) parts.push({ isCode: true, lines: [], fence });
    else if (last?.isCode && fence.startsWith(last.fence) && line.trim() === fence) parts.push({ isCode: false, lines: [], fence: "" });
    else last?.lines.push(line);
  }
  return parts
    .map(({ isCode, lines }) => ({ isCode, text: isCode ? lines.join("\n") : lines.join("\n").trim() }))
    .filter(({ text }) => text !== "");
}

export interface Run {
  readonly code: boolean;
  readonly text: string;
}

/** Splits at backticks, so that names of files and functions can be set as code. */
export function codeRuns(text: string): readonly Run[] {
  return plain(text)
    .split(/`([^`\n]+)`/)
    .map((part, index) => ({ code: index % 2 === 1, text: part }))
    .filter((run) => run.text !== "");
}

const TITLE_LETTERS = 80;

/** The first line of a request, short enough for a list; `otherwise` where it says nothing. */
export function titleOf(text: string, otherwise: string): string {
  const line = plain(text).trim().split("\n", 1)[0] ?? "";
  if (!line) return otherwise;
  return line.length > TITLE_LETTERS ? `${line.slice(0, TITLE_LETTERS - 1).trimEnd()}…` : line;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit] ?? ""}`;
}
