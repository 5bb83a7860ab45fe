import type { ReactNode } from "react";
import type { Tone } from "../model/items.ts";
import { plain } from "../model/plain.ts";

/** A fact in a few letters; the state of a run, task or agent is a Pill. */
export function Badge({ tone, title, children }: { tone?: Tone; title?: string; children: ReactNode }) {
  return (
    <span className="badge" data-tone={tone} title={title}>
      {typeof children === "string" ? plain(children) : children}
    </span>
  );
}
