import type { ReactNode } from "react";
import type { IconName } from "../model/items.ts";

export type AnyIcon = IconName | "clock" | "done" | "half" | "todo" | "down" | "plug" | "empty";

const DRAWINGS: Readonly<Record<AnyIcon, ReactNode>> = {
  alert: <path d="M8 2.3 14.3 13H1.7zM8 6.5v3M8 11.2v.1" />,
  announce: <path d="M2.5 6.5v3h2L11 12.5v-9L4.5 6.5zM13 6.5q1 1.5 0 3M5.5 9.8l.8 3.4" />,
  ask: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM6.3 6.3a1.7 1.7 0 1 1 2.5 1.5c-.6.3-.8.6-.8 1.2M8 11v.1" />,
  base: <path d="M2.5 5 8 2.3 13.5 5 8 7.7zM2.5 8 8 10.7 13.5 8M2.5 11 8 13.7 13.5 11" />,
  check: <path d="M3 2.5h10v11H3zM5.5 8.2l1.8 1.8 3.4-3.8" />,
  clock: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 4.5V8l2.3 1.5" />,
  done: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM5.4 8.2l1.8 1.8 3.5-3.8" />,
  down: <path d="M8 3v9M4.5 8.8 8 12.3l3.5-3.5" />,
  empty: <path d="M5 3.2v9.6l7.5-4.8z" />,
  flag: <path d="M5 3.2v9.6l7.5-4.8z" />,
  half: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.5a3.5 3.5 0 0 1 0 7z" fill="currentColor" stroke="none" />
    </>
  ),
  no: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM6 6l4 4M10 6l-4 4" />,
  note: <path d="M4 2h5.5L12.5 5v9H4zM6.2 7h4M6.2 9.3h4M6.2 11.6h2.5" />,
  ok: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM5.4 8.2l1.8 1.8 3.5-3.8" />,
  package: <path d="M8 1.8 13.5 4.7v6.6L8 14.2 2.5 11.3V4.7zM2.5 4.7 8 7.6l5.5-2.9M8 7.6v6.6" />,
  plug: <path d="M6 2v3.5M10 2v3.5M4 5.5h8v2a4 4 0 0 1-8 0zM8 11.5V14" />,
  revise: <path d="M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.8v3h-3" />,
  target: (
    <>
      <circle cx="8" cy="8" r="6" />
      <circle cx="8" cy="8" r="3" />
      <circle cx="8" cy="8" r=".6" fill="currentColor" />
    </>
  ),
  todo: <circle cx="8" cy="8" r="6" strokeDasharray="2.5 2.2" />,
  turn: <path d="M2.5 3h11v8h-6l-3 2.5V11h-2z" />,
};

export function Icon({ name, emoji }: { name: AnyIcon; emoji?: string }) {
  return (
    <>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        {DRAWINGS[name]}
      </svg>
      {emoji !== undefined && <span className="unseen">{emoji}</span>}
    </>
  );
}
