// Why a change is there: what was asked, what was said and done, what was found and decided.

import type { Recorded } from "../../api/types.ts";

export interface Mark {
  readonly seq: number;
  readonly ts: number;
  readonly kind: "task" | "message" | "proposal" | "checks" | "verdict" | "applied" | "undone" | "failed";
  readonly who: string;
  readonly text: string;
  /** Of the attempt that it belongs to, from 1. */
  readonly attempt: number;
  /** The turn whose transcript shows how it was done. */
  readonly turnId?: string;
  readonly tone?: "ok" | "warn" | "danger";
}

const TONES = { apply: "ok", revise: "warn", reject: "danger" } as const;

/** Everything about one task, in order. */
export function trailOf(events: readonly Recorded[], taskId: string): readonly Mark[] {
  const marks: Mark[] = [];
  let attempt = 1;
  const add = (event: Recorded, mark: Omit<Mark, "seq" | "ts" | "attempt" | "who"> & { who?: string }): void => {
    marks.push({ seq: event.seq, ts: event.ts, attempt, who: event.actor, ...mark });
  };
  for (const event of events) {
    switch (event.event) {
      case "task_dispatched":
        if (event.payload.taskId === taskId) add(event, { kind: "task", text: event.payload.instruction });
        break;
      case "turn_started": {
        const { taskId: about = "", text, turnId, to } = event.payload;
        if (about === taskId) add(event, { kind: "message", who: to, text, turnId });
        break;
      }
      case "proposal_submitted":
        if (event.payload.taskId === taskId) add(event, { kind: "proposal", text: event.payload.summary });
        break;
      case "checks_run": {
        const { taskId: about, sentence, status } = event.payload;
        if (about === taskId) add(event, { kind: "checks", text: sentence, tone: status === "passed" ? "ok" : status === "failed" ? "danger" : "warn" });
        break;
      }
      case "proposal_reviewed": {
        const { taskId: about, decision, reason } = event.payload;
        if (about !== taskId) break;
        add(event, { kind: "verdict", text: reason ?? "", tone: TONES[decision] });
        if (decision === "revise") attempt += 1;
        break;
      }
      case "proposal_applied":
        if (event.payload.taskId === taskId) add(event, { kind: "applied", text: event.payload.files.join(", "), tone: "ok" });
        break;
      case "proposal_undone":
        if (event.payload.taskId === taskId) add(event, { kind: "undone", text: event.payload.files.join(", "), tone: "warn" });
        break;
      case "task_failed":
        if (event.payload.taskId === taskId) add(event, { kind: "failed", text: event.payload.reason, tone: "danger" });
        break;
      default:
        break;
    }
  }
  return marks;
}
