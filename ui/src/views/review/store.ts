// What a person has done about a proposal and not sent yet, kept in this browser so that it outlives a
// reload: files seen, lines commented, parts left out, the reason so far. Two tabs share it.

import { create } from "zustand";
import type { LeftOut } from "../../model/review/choice.ts";
import type { Comment } from "../../model/review/comments.ts";
import type { Seen } from "../../model/review/seen.ts";

export interface Desk {
  readonly seen: Seen;
  readonly comments: readonly Comment[];
  readonly leftOut: LeftOut;
  readonly reason: string;
  /** The last attempt that was looked at, so that a later one can tell what is new. */
  readonly looked: number;
  /** The one that was looked at before it; 0 when there was none. */
  readonly before: number;
  readonly at: number;
}

export const EMPTY: Desk = { seen: {}, comments: [], leftOut: {}, reason: "", looked: 0, before: 0, at: 0 };

const PLACE = "agentcanvas.review.";
/** The oldest ones go when there are more: nobody comes back to them. */
const MOST = 60;

interface Desks {
  readonly desks: Readonly<Record<string, Desk>>;
}

const useDesks = create<Desks>(() => ({ desks: {} }));

export const deskName = (runId: string, taskId: string): string => `${runId}/${taskId}`;

export function useDesk(name: string): Desk {
  return useDesks(({ desks }) => desks[name]) ?? read(name);
}

export function deskOf(name: string): Desk {
  return useDesks.getState().desks[name] ?? read(name);
}

export function change(name: string, by: (desk: Desk) => Partial<Desk>): void {
  const before = deskOf(name);
  const desk = { ...before, ...by(before), at: Date.now() };
  useDesks.setState(({ desks }) => ({ desks: { ...desks, [name]: desk } }));
  try {
    localStorage.setItem(PLACE + name, JSON.stringify(desk));
    prune();
  } catch {
    // Nothing to keep it in; it lasts as long as the page.
  }
}

const known = new Map<string, Desk>();

/** As it was kept; what another version or somebody else has put there is no desk. */
function read(name: string): Desk {
  const cached = known.get(name);
  if (cached) return cached;
  const desk = parsed(stored(name));
  known.set(name, desk);
  return desk;
}

function stored(name: string): string {
  try {
    return localStorage.getItem(PLACE + name) ?? "";
  } catch {
    return "";
  }
}

function parsed(text: string): Desk {
  try {
    const kept = JSON.parse(text) as Partial<Desk> | null;
    if (kept === null || typeof kept !== "object") return EMPTY;
    return {
      seen: isTable(kept.seen) ? kept.seen : {},
      comments: Array.isArray(kept.comments) ? kept.comments.filter(isComment) : [],
      leftOut: isTable(kept.leftOut) ? kept.leftOut : {},
      reason: typeof kept.reason === "string" ? kept.reason : "",
      looked: typeof kept.looked === "number" ? kept.looked : 0,
      before: typeof kept.before === "number" ? kept.before : 0,
      at: typeof kept.at === "number" ? kept.at : 0,
    };
  } catch {
    return EMPTY;
  }
}

const isTable = (value: unknown): value is Record<string, never> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isComment(value: unknown): value is Comment {
  if (!isTable(value)) return false;
  const { path, text, quote, line, id } = value as Record<string, unknown>;
  return [path, text, quote].every((one) => typeof one === "string") && [line, id].every((one) => typeof one === "number");
}

function prune(): void {
  const names = Object.keys(localStorage).filter((key) => key.startsWith(PLACE));
  if (names.length <= MOST) return;
  const dated = names.map((key) => [key, parsed(localStorage.getItem(key) ?? "").at] as const);
  for (const [key] of dated.sort((a, b) => a[1] - b[1]).slice(0, names.length - MOST)) localStorage.removeItem(key);
}

window.addEventListener("storage", ({ key, newValue }) => {
  if (!key?.startsWith(PLACE)) return;
  const name = key.slice(PLACE.length);
  useDesks.setState(({ desks }) => ({ desks: { ...desks, [name]: parsed(newValue ?? "") } }));
});

interface Look {
  readonly split: boolean;
  readonly look: (chosen: { readonly split: boolean }) => void;
}

const LOOK = "agentcanvas.diff";

/** How diffs are drawn, for all proposals. */
export const useLook = create<Look>((set) => ({
  split: kept(LOOK) === "split",
  look: ({ split }) => {
    set({ split });
    try {
      localStorage.setItem(LOOK, split ? "split" : "unified");
    } catch {
      // It lasts as long as the page.
    }
  },
}));

function kept(key: string): string {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}
