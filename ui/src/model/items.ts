// What the timeline shows for an event: a card, a quiet line, or nothing. Only words are chosen
// here; how they look is for the components.

import type { AnnounceMessage, Decision, PersonAsked, Recorded, TestsRun } from "../api/types.ts";
import { type Names, clipped, duration, nameOf, plural } from "./words.ts";

export type Tone = "accent" | "secondary" | "ok" | "warn" | "danger" | "muted";
export type IconName =
  | "alert"
  | "announce"
  | "ask"
  | "base"
  | "check"
  | "flag"
  | "no"
  | "note"
  | "ok"
  | "package"
  | "revise"
  | "target"
  | "turn";

export interface Fact {
  readonly text: string;
  readonly tone?: Tone;
}

export interface Details {
  readonly label: string;
  readonly text?: string;
  readonly files?: readonly string[];
}

interface Shown {
  readonly seq: number;
  readonly ts: number;
  readonly event: string;
  readonly icon: IconName;
  readonly tone: Tone;
  readonly details?: Details;
}

export interface Card extends Shown {
  readonly kind: "card";
  readonly emoji: string;
  readonly title: string;
  readonly to?: string;
  readonly decision?: Decision;
  readonly task?: string;
  readonly facts: readonly Fact[];
  readonly body: string;
  /** The question it asks; it is open as long as the run says so. */
  readonly ask?: string;
}

export interface Line extends Shown {
  readonly kind: "line";
  readonly text: string;
}

export type Item = Card | Line;

type CardWords = Omit<Card, "kind" | "seq" | "ts" | "event" | "facts" | "body"> & {
  readonly body: string;
  readonly facts?: readonly Fact[];
};
type LineWords = Pick<Line, "text"> & { icon?: IconName; tone?: Tone; details?: Details | undefined };

export function present(event: Recorded, names: Names): Item | null {
  const name = (id: string) => nameOf(names, id);
  switch (event.event) {
    case "task_dispatched": {
      const { taskId, workerId, instruction } = event.payload;
      const sides = { title: name(event.actor), to: name(workerId), task: taskId };
      return card(event, { ...sides, icon: "target", emoji: "🎯", tone: "secondary", body: instruction });
    }
    case "proposal_submitted": {
      const { taskId, changedFiles, summary, tests } = event.payload;
      const facts = [{ text: `${plural(changedFiles, "file")} changed` }, ...testFacts(tests)];
      const sides = { title: name(event.actor), to: "Orchestrator", task: taskId };
      return card(event, { ...sides, icon: "package", emoji: "📦", tone: "warn", facts, body: summary });
    }
    case "proposal_reviewed": {
      const { taskId, decision, reason } = event.payload;
      const looks = VERDICTS[decision];
      const title = `${name(event.actor)}: ${decision.toUpperCase()}`;
      const facts = event.provenance === "system" ? [{ text: "by rule, without a reader" }] : [];
      return card(event, { ...looks, title, decision, task: taskId, facts, body: reason ?? "" });
    }
    case "announce":
      return announced(event, event.payload, name);
    case "checks_run": {
      const { taskId, status, sentence, tests } = event.payload;
      const looks = CHECKS[status] ?? { icon: "alert", emoji: "⚠️", tone: "warn", title: `Checks: ${status}` };
      return card(event, { ...looks, task: taskId, facts: testFacts(tests), body: sentence });
    }
    case "person_asked":
      return asked(event, event.payload, name);
    case "warning":
      return card(event, {
        icon: "alert",
        emoji: "⚠️",
        tone: "warn",
        title: "Warning",
        body: event.payload.sentence,
      });
    case "task_failed": {
      const { taskId, reason } = event.payload;
      return card(event, { icon: "no", emoji: "❌", tone: "danger", title: "Task failed", task: taskId, body: reason });
    }
    case "run_ended": {
      const { done, reason, result = "" } = event.payload;
      const looks = done
        ? ({ icon: "ok", emoji: "🏁", tone: "ok", title: "Run done" } as const)
        : ({ icon: "no", emoji: "🏁", tone: "danger", title: "Run ended before its goal" } as const);
      return card(event, { ...looks, body: result ? `${reason}\n\n${result}` : reason });
    }
    default:
      return quiet(event, name);
  }
}

const VERDICTS = {
  apply: { icon: "ok", emoji: "✅", tone: "ok" },
  reject: { icon: "no", emoji: "❌", tone: "danger" },
  revise: { icon: "revise", emoji: "🔁", tone: "warn" },
} as const;

const CHECKS: Readonly<Record<string, Pick<Card, "icon" | "emoji" | "tone" | "title">>> = {
  passed: { icon: "check", emoji: "✅", tone: "ok", title: "Checks passed" },
  failed: { icon: "alert", emoji: "❌", tone: "danger", title: "Checks failed" },
  red_before: { icon: "alert", emoji: "⚠️", tone: "warn", title: "Checks were red before, too" },
  unsound: { icon: "alert", emoji: "⚠️", tone: "warn", title: "Checks prove nothing here" },
  unverified: { icon: "alert", emoji: "⚠️", tone: "warn", title: "Nothing checked this" },
};

type Naming = (id: string) => string;

function announced(event: Recorded, said: AnnounceMessage, name: Naming): Card {
  const toUser = event.provenance === "announce_user";
  const failed = said.status !== "ok";
  const facts: Fact[] = [
    ...(failed ? [{ text: said.status, tone: "danger" as const }] : []),
    ...(said.touchedFiles.length ? [{ text: plural(said.touchedFiles.length, "file") }] : []),
    ...testFacts(said.testsRun),
    ...(said.durationMs ? [{ text: duration(said.durationMs) }] : []),
  ];
  return card(event, {
    icon: "announce",
    emoji: "📣",
    tone: failed ? "danger" : "accent",
    title: toUser ? name(event.actor) : said.workerName,
    to: toUser ? "You" : "Orchestrator",
    facts,
    body: said.summary,
    ...(said.touchedFiles.length && { details: { label: "Files", files: said.touchedFiles } }),
  });
}

function asked(event: Recorded, ask: PersonAsked, name: Naming): Card {
  const [about = ""] = ask.scope.split(":", 1);
  const title = ASKS[about] ?? `${name(event.actor)} asks`;
  return card(event, {
    icon: "ask",
    emoji: "❓",
    tone: "warn",
    title,
    to: name(ask.person),
    ...(ask.taskId && { task: ask.taskId }),
    body: ask.question,
    ask: ask.askId,
  });
}

const ASKS: Readonly<Record<string, string>> = {
  review: "Waits for a verdict",
  plan: "Waits for a yes to the plan",
};

function quiet(event: Recorded, name: Naming): Line | null {
  switch (event.event) {
    case "run_started":
      return line(event, { icon: "flag", text: `Run of ${event.payload.flow} started: ${event.payload.request}` });
    case "interaction_started":
      return line(event, { text: `${event.payload.label} begins` });
    case "interaction_ended":
      return line(event, { text: `Interaction ended: ${event.payload.reason}` });
    case "turn_started": {
      const { to, text, attempt = 1, revision = 0 } = event.payload;
      const again = [attempt > 1 && `attempt ${attempt}`, revision > 0 && `revision ${revision}`].filter(Boolean);
      const words = `${name(event.actor)} asks ${name(to)}${again.length ? `, ${again.join(", ")}` : ""}`;
      return line(event, { text: words, details: message(text) });
    }
    case "turn_ended": {
      const { ok = true, reason, text, durationMs = 0 } = event.payload;
      const took = durationMs ? ` after ${duration(durationMs)}` : "";
      const who = name(event.actor);
      if (ok) return line(event, { text: `${who} answers${took}`, details: message(text) });
      const why = reason ? `: ${reason}` : "";
      return line(event, { icon: "no", tone: "danger", text: `${who} failed${took}${why}`, details: message(text) });
    }
    case "proposal_applied": {
      const { taskId, files, commit } = event.payload;
      const where = commit ? ` as ${commit.slice(0, 12)}` : "";
      const text = `${taskId} applied: ${plural(files.length, "file")}${where}`;
      return line(event, { icon: "ok", tone: "ok", text, details: fileList(files) });
    }
    case "task_answered":
      return line(event, { icon: "ok", tone: "ok", text: `${event.payload.taskId} answered, with no change` });
    case "proposal_undone": {
      const { taskId, files } = event.payload;
      const text = `${taskId} taken back: ${plural(files.length, "file")}`;
      return line(event, { icon: "revise", tone: "warn", text, details: fileList(files) });
    }
    case "proposal_discarded":
      return line(event, { icon: "no", text: `Candidate ${event.payload.proposalId} was let go` });
    case "part_chosen": {
      const { taskId, chosen = [] } = event.payload;
      const text = `${taskId}: only a part is wanted, of ${plural(chosen.length, "file")}`;
      return line(event, { icon: "revise", text, details: fileList(chosen.map(({ path }) => path)) });
    }
    case "proposal_rechecked": {
      const { taskId, fitness, reason, meets = [] } = event.payload;
      const why = [reason, ...meets].filter(Boolean).join("; ");
      const tone = fitness === "conflicts" ? "danger" : fitness === "clean" ? "ok" : "warn";
      return line(event, { icon: "base", tone, text: `${taskId}: now ${fitness}${why ? `: ${why}` : ""}` });
    }
    case "person_answered": {
      const { person, answer } = event.payload;
      return line(event, { icon: "ask", text: `${name(person)} answered${answer ? `: ${answer}` : ""}` });
    }
    case "generation_taken": {
      const { generation, reason, files = [] } = event.payload;
      return line(event, { icon: "base", text: `Base g${generation}: ${reason}`, details: fileList(files) });
    }
    case "noted":
      return line(event, { icon: "note", text: `Noted: ${event.payload.entry}` });
    case "drew": {
      const { choice, among = [], why } = event.payload;
      return line(event, { icon: "note", text: `Drew ${choice}: ${why}`, details: [`Among ${among.join(", ")}`] });
    }
    case "run_parked":
      return line(event, { icon: "ask", tone: "warn", text: `Parked: waits for ${event.payload.person}` });
    case "run_interrupted":
      return line(event, { icon: "alert", tone: "warn", text: "Interrupted: the process that ran it is gone" });
    case "run_resumed":
      return line(event, { icon: "flag", text: "The run goes on" });
    default:
      // Progress is shown while it lasts, and the beginning of an apply says nothing its end does
      // not say. A newer server may also send what this page does not know.
      return null;
  }
}

function testFacts(tests: TestsRun | null | undefined): readonly Fact[] {
  if (!tests) return [];
  const total = tests.passed + tests.failed;
  return [{ text: `tests: ${tests.passed}/${total} passed`, tone: tests.failed ? "danger" : "ok" }];
}

function message(text: string): Details | undefined {
  return text.trim() ? { label: "Message", text: text.trim() } : undefined;
}

function fileList(files: readonly string[]): Details | undefined {
  return files.length ? { label: "Files", files } : undefined;
}

function card(event: Recorded, { facts = [], ...words }: CardWords): Card {
  const { start, whole } = clipped(words.body);
  const more = whole === undefined ? {} : { details: { label: "Show all", text: whole } };
  return { kind: "card", ...place(event), facts, ...words, body: start, ...more };
}

function line(event: Recorded, { text, icon = "turn", tone = "muted", details }: LineWords): Line {
  return { kind: "line", ...place(event), text, icon, tone, ...(details && { details }) };
}

function place({ seq, ts, event }: Recorded): Pick<Shown, "seq" | "ts" | "event"> {
  return { seq, ts, event };
}
