import type { RunStatus, TaskStatus } from "../api/types.ts";
import { useT } from "../i18n/index.ts";
import type { Tone } from "../model/items.ts";

type Status = RunStatus | TaskStatus | "unfinished";

const TONES: Readonly<Record<Status, Tone>> = {
  new: "muted",
  running: "accent",
  parked: "warn",
  interrupted: "warn",
  done: "ok",
  stopped: "danger",
  dispatched: "accent",
  in_review: "warn",
  revising: "warn",
  applied: "ok",
  rejected: "danger",
  failed: "danger",
  answered: "ok",
  undone: "muted",
  unfinished: "muted",
};

export const statusTone = (status: Status): Tone => TONES[status];

/** The state of a run, a task or an agent. */
export function Pill({ status }: { status: Status }) {
  const t = useT();
  return (
    <span className="pill" data-tone={TONES[status]}>
      {status === "running" && <span className="dot" data-live />}
      {t(`status.${status}`)}
    </span>
  );
}
