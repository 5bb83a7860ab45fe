import type { RunStatus, TaskStatus } from "../api/types.ts";
import type { Tone } from "../model/items.ts";

type Look = readonly [word: string, tone: Tone];

const LOOKS: Readonly<Record<RunStatus | TaskStatus, Look>> = {
  new: ["New", "muted"],
  running: ["Running", "accent"],
  parked: ["Needs you", "warn"],
  interrupted: ["Interrupted", "warn"],
  done: ["Done", "ok"],
  stopped: ["Ended", "danger"],
  dispatched: ["Working", "accent"],
  in_review: ["In review", "warn"],
  revising: ["Revising", "warn"],
  applied: ["Applied", "ok"],
  rejected: ["Rejected", "danger"],
  failed: ["Failed", "danger"],
  answered: ["Answered", "ok"],
  undone: ["Undone", "muted"],
};

export const statusWord = (status: RunStatus | TaskStatus): string => LOOKS[status][0];
export const statusTone = (status: RunStatus | TaskStatus): Tone => LOOKS[status][1];

export function Pill({ status }: { status: RunStatus | TaskStatus }) {
  const [word, tone] = LOOKS[status];
  return (
    <span className="pill" data-tone={tone}>
      {status === "running" && <span className="dot" data-live />}
      {word}
    </span>
  );
}
