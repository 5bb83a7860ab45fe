// Which rows of the timeline are shown: filtered, searched, and under the heading of their task.

import type { Provenance, TaskStatus } from "../api/types.ts";
import type { Item } from "./items.ts";
import { type RunView, shownStatus, taskBehind } from "./run.ts";

export type Kind = "all" | "proposals" | "reviews" | "checks" | "questions" | "problems";

const OF_KIND: Readonly<Record<Exclude<Kind, "all">, (item: Item) => boolean>> = {
  proposals: ({ event }) => event === "proposal_submitted" || event === "proposal_applied" || event === "task_dispatched",
  reviews: ({ event }) => event === "proposal_reviewed" || event === "proposal_undone",
  checks: ({ event }) => event === "checks_run",
  questions: ({ event }) => event === "person_asked" || event === "person_answered",
  problems: ({ tone, event }) => tone === "danger" || event === "warning",
};

export interface Filter {
  readonly kind: Kind;
  /** The id of an agent, or empty for all. */
  readonly agent: string;
  readonly provenance: Provenance | "";
  readonly search: string;
  readonly byTask: boolean;
  /** Tasks whose events are folded away under their heading. */
  readonly folded: ReadonlySet<string>;
}

export const NO_FILTER: Filter = {
  kind: "all",
  agent: "",
  provenance: "",
  search: "",
  byTask: false,
  folded: new Set(),
};

export interface ItemRow {
  readonly kind: "item";
  readonly key: string;
  readonly item: Item;
}

export interface TaskRow {
  readonly kind: "task";
  readonly key: string;
  readonly taskId: string;
  readonly title: string;
  readonly status: TaskStatus | "unfinished" | null;
  readonly count: number;
  readonly ms: number;
  readonly folded: boolean;
}

export type Row = ItemRow | TaskRow;

export const isFiltering = ({ kind, agent, provenance, search }: Filter): boolean =>
  kind !== "all" || agent !== "" || provenance !== "" || search.trim() !== "";

export function rowsOf(items: readonly Item[], filter: Filter, run: Pick<RunView, "tasks" | "status">): readonly Row[] {
  const shown = isFiltering(filter) ? items.filter(matching(filter)) : items;
  return filter.byTask ? grouped(shown, filter.folded, run) : shown.map(itemRow);
}

const itemRow = (item: Item): ItemRow => ({ kind: "item", key: String(item.seq), item });

function matching({ kind, agent, provenance, search }: Filter): (item: Item) => boolean {
  const isOfKind = kind === "all" ? () => true : OF_KIND[kind];
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return (item) =>
    isOfKind(item) &&
    (agent === "" || item.actor === agent) &&
    (provenance === "" || item.provenance === provenance) &&
    (words.length === 0 || holds(item, words));
}

function holds(item: Item, words: readonly string[]): boolean {
  const head = item.kind === "card" ? `${item.title} ${item.to ?? ""} ${item.body}` : item.text;
  const { text = "", files = [] } = item.details ?? {};
  const all = `${head} ${item.task ?? ""} ${text} ${files.join(" ")}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

/** Tasks in the order in which they began; what belongs to none stays before the first of them. */
function grouped(items: readonly Item[], folded: ReadonlySet<string>, run: Pick<RunView, "tasks" | "status">): readonly Row[] {
  const known = new Map(run.tasks.map((task) => [task.taskId, task]));
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const task = taskBehind(item.task ?? "", (id) => known.has(id));
    const group = groups.get(task);
    if (group) group.push(item);
    else groups.set(task, [item]);
  }
  return [...groups].flatMap(([taskId, group]) => {
    const first = group[0];
    const last = group.at(-1);
    const isFolded = folded.has(taskId);
    const task = known.get(taskId);
    const heading: TaskRow = {
      kind: "task",
      key: `task:${taskId}`,
      taskId,
      title: task?.instruction ?? "",
      status: task ? shownStatus(task.status, run.status) : null,
      count: group.length,
      ms: first && last ? last.ts - first.ts : 0,
      folded: isFolded,
    };
    return [heading, ...(isFolded ? [] : group.map(itemRow))];
  });
}

/** The first row at or after a time of day, `14:02` or `14:02:30`, on the day of the newest item. */
export function rowAt(rows: readonly Row[], time: string): number | null {
  const parts = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(time.trim());
  const newest = rows.findLast((row) => row.kind === "item");
  if (!parts || newest?.kind !== "item") return null;
  const [, hours, minutes, seconds = "0"] = parts.map(Number) as [number, number, number, number | undefined];
  const wanted = new Date(newest.item.ts).setHours(hours, minutes, Number(seconds), 0);
  const found = rows.findIndex((row) => row.kind === "item" && row.item.ts >= wanted);
  return found < 0 ? rows.length - 1 : found;
}
