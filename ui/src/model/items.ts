// What the timeline shows for an event: a card, a quiet line, or nothing. Only words are chosen
// here, in the language of `t`; how they look is for the components.

import type { AnnounceMessage, Decision, PersonAsked, Provenance, Recorded, TestsRun } from "../api/types.ts";
import type { PlainKey, Translate } from "../i18n/say.ts";
import { plain } from "./plain.ts";
import { type Names, clipped, duration, isYou, nameOf } from "./words.ts";

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
  readonly event: Recorded["event"];
  /** Who did it, by id, and from where it comes (V2): what a reader can filter by. */
  readonly actor: string;
  readonly provenance: Provenance;
  readonly task?: string;
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

/** Everything the words of an item depend on, besides the event. */
export interface Telling {
  readonly names: Names;
  readonly t: Translate;
}

type Common = "kind" | "seq" | "ts" | "event" | "actor" | "provenance";
type CardWords = Omit<Card, Common | "facts" | "body"> & { readonly body: string; readonly facts?: readonly Fact[] };
type LineWords = Pick<Line, "text"> & {
  icon?: IconName;
  tone?: Tone;
  task?: string | undefined;
  details?: Details | undefined;
};

export function present(event: Recorded, telling: Telling): Item | null {
  const { t } = telling;
  const name = (id: string) => (isYou(id) ? t("you") : nameOf(telling.names, id));
  switch (event.event) {
    case "task_dispatched": {
      const { taskId, workerId, instruction } = event.payload;
      const sides = { title: name(event.actor), to: name(workerId), task: taskId };
      return card(event, t, { ...sides, icon: "target", emoji: "🎯", tone: "secondary", body: instruction });
    }
    case "proposal_submitted": {
      const { taskId, changedFiles, summary, tests } = event.payload;
      const facts = [{ text: t("item.changed", { count: changedFiles }) }, ...testFacts(tests, t)];
      const sides = { title: name(event.actor), to: t("item.orchestrator"), task: taskId };
      return card(event, t, { ...sides, icon: "package", emoji: "📦", tone: "warn", facts, body: summary });
    }
    case "proposal_reviewed": {
      const { taskId, decision, reason } = event.payload;
      const looks = VERDICTS[decision];
      const title = `${name(event.actor)}: ${decision.toUpperCase()}`;
      const facts = event.provenance === "system" ? [{ text: t("item.byRule") }] : [];
      return card(event, t, { ...looks, title, decision, task: taskId, facts, body: reason ?? "" });
    }
    case "announce":
      return announced(event, event.payload, name, t);
    case "checks_run": {
      const { taskId, status, sentence, tests } = event.payload;
      const { title, ...looks } = CHECKS[status] ?? CHECKS_OTHER;
      const words = title === null ? t("item.checks.other", { status }) : t(title);
      return card(event, t, { ...looks, title: words, task: taskId, facts: testFacts(tests, t), body: sentence });
    }
    case "person_asked":
      return asked(event, event.payload, name, t);
    case "warning": {
      const looks = { icon: "alert", emoji: "⚠️", tone: "warn" } as const;
      return card(event, t, { ...looks, title: t("item.warning"), body: event.payload.sentence });
    }
    case "task_failed": {
      const { taskId, reason } = event.payload;
      const looks = { icon: "no", emoji: "❌", tone: "danger" } as const;
      return card(event, t, { ...looks, title: t("item.taskFailed"), task: taskId, body: reason });
    }
    case "run_ended": {
      const { done, reason, result = "" } = event.payload;
      const looks = done
        ? ({ icon: "ok", emoji: "🏁", tone: "ok", title: t("item.runDone") } as const)
        : ({ icon: "no", emoji: "🏁", tone: "danger", title: t("item.runEnded") } as const);
      return card(event, t, { ...looks, body: result ? `${reason}\n\n${result}` : reason });
    }
    default:
      return quiet(event, name, t);
  }
}

const VERDICTS = {
  apply: { icon: "ok", emoji: "✅", tone: "ok" },
  reject: { icon: "no", emoji: "❌", tone: "danger" },
  revise: { icon: "revise", emoji: "🔁", tone: "warn" },
} as const;

type Looks = Pick<Card, "icon" | "emoji" | "tone"> & { readonly title: PlainKey | null };

const CHECKS: Readonly<Record<string, Looks>> = {
  passed: { icon: "check", emoji: "✅", tone: "ok", title: "item.checks.passed" },
  failed: { icon: "alert", emoji: "❌", tone: "danger", title: "item.checks.failed" },
  red_before: { icon: "alert", emoji: "⚠️", tone: "warn", title: "item.checks.redBefore" },
  unsound: { icon: "alert", emoji: "⚠️", tone: "warn", title: "item.checks.unsound" },
  unverified: { icon: "alert", emoji: "⚠️", tone: "warn", title: "item.checks.unverified" },
};
const CHECKS_OTHER: Looks = { icon: "alert", emoji: "⚠️", tone: "warn", title: null };

type Naming = (id: string) => string;

function announced(event: Recorded, said: AnnounceMessage, name: Naming, t: Translate): Card {
  const toUser = event.provenance === "announce_user";
  const failed = said.status !== "ok";
  const facts: Fact[] = [
    ...(failed ? [{ text: said.status, tone: "danger" as const }] : []),
    ...(said.touchedFiles.length ? [{ text: t("item.files", { count: said.touchedFiles.length }) }] : []),
    ...testFacts(said.testsRun, t),
    ...(said.durationMs ? [{ text: duration(said.durationMs) }] : []),
  ];
  return card(event, t, {
    icon: "announce",
    emoji: "📣",
    tone: failed ? "danger" : "accent",
    title: toUser ? name(event.actor) : plain(said.workerName),
    to: toUser ? t("you") : t("item.orchestrator"),
    facts,
    body: said.summary,
    ...(said.touchedFiles.length && { details: { label: t("item.filesLabel"), files: said.touchedFiles } }),
  });
}

function asked(event: Recorded, ask: PersonAsked, name: Naming, t: Translate): Card {
  const [about] = ask.scope.split(":", 1);
  const title =
    about === "review"
      ? t("item.asks.review")
      : about === "plan"
        ? t("item.asks.plan")
        : t("item.asks.other", { name: name(event.actor) });
  return card(event, t, {
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

function quiet(event: Recorded, name: Naming, t: Translate): Line | null {
  switch (event.event) {
    case "run_started": {
      const { flow, request } = event.payload;
      return line(event, { icon: "flag", text: t("item.started", { flow, request }) });
    }
    case "interaction_started":
      return line(event, { text: t("item.begins", { label: event.payload.label }) });
    case "interaction_ended":
      return line(event, { text: t("item.interactionEnded", { reason: event.payload.reason }) });
    case "turn_started": {
      const { to, text, taskId, attempt = 1, revision = 0 } = event.payload;
      const again = [
        attempt > 1 && t("item.attempt", { number: attempt }),
        revision > 0 && t("item.revision", { number: revision }),
      ].filter((part) => part !== false);
      const words = t("item.asksAgent", { from: name(event.actor), to: name(to) });
      const whole = [words, ...again].join(", ");
      return line(event, { text: whole, task: taskId, details: message(text, t) });
    }
    case "turn_ended": {
      const { ok = true, reason, text, taskId, durationMs = 0 } = event.payload;
      const who = name(event.actor);
      const details = message(text, t);
      if (ok) {
        const time = duration(durationMs);
        const said = durationMs ? t("item.answersAfter", { name: who, time }) : t("item.answers", { name: who });
        return line(event, { text: said, task: taskId, details });
      }
      const failed = t("item.failed", { name: who, reason: reason ?? "?" });
      return line(event, { icon: "no", tone: "danger", text: failed, task: taskId, details });
    }
    case "proposal_applied": {
      const { taskId, files, commit } = event.payload;
      const said = t("item.applied", { task: taskId, count: files.length });
      const text = commit ? `${said} · ${commit.slice(0, 12)}` : said;
      return line(event, { icon: "ok", tone: "ok", text, task: taskId, details: fileList(files, t) });
    }
    case "proposal_undone": {
      const { taskId, files } = event.payload;
      const text = t("item.undone", { task: taskId, count: files.length });
      return line(event, { icon: "revise", tone: "warn", text, task: taskId, details: fileList(files, t) });
    }
    case "proposal_discarded":
      return line(event, { icon: "no", text: t("item.discarded", { proposal: event.payload.proposalId }) });
    case "cleaning_up": {
      const { runs, frees, largest = [] } = event.payload;
      const text = t("item.cleaning", { count: runs.length, size: `${(frees / 1e6).toFixed(1)} MB` });
      return line(event, { icon: "note", text, details: fileList(largest.map(({ path }) => path), t) });
    }
    case "setup_done": {
      const { command, notes = [] } = event.payload;
      return line(event, { icon: "base", text: t("item.setup", { command }), details: fileList(notes, t) });
    }
    case "part_chosen": {
      const { taskId, chosen = [] } = event.payload;
      const text = t("item.partChosen", { task: taskId, count: chosen.length });
      const details = fileList(chosen.map(({ path }) => path), t);
      return line(event, { icon: "revise", text, task: taskId, details });
    }
    case "proposal_rechecked": {
      const { taskId, fitness, reason, meets = [] } = event.payload;
      const why = [reason, ...meets].filter(Boolean).join("; ");
      const tone = fitness === "conflicts" ? "danger" : fitness === "clean" ? "ok" : "warn";
      const said = t("item.rechecked", { task: taskId, fitness });
      return line(event, { icon: "base", tone, text: why ? `${said}: ${why}` : said, task: taskId });
    }
    case "person_answered": {
      const { person, answer } = event.payload;
      const said = t("item.answered", { name: name(person) });
      return line(event, { icon: "ask", text: answer ? `${said}: ${answer}` : said });
    }
    case "generation_taken": {
      const { generation, reason, files = [] } = event.payload;
      const text = t("item.base", { number: generation, reason });
      return line(event, { icon: "base", text, details: fileList(files, t) });
    }
    case "noted":
      return line(event, { icon: "note", text: t("item.noted", { entry: event.payload.entry }) });
    case "member_asked": {
      const { to, text } = event.payload;
      return line(event, { icon: "ask", text: t("item.memberAsked", { name: name(event.actor), to: name(to), text }) });
    }
    case "member_answered": {
      const { to, text } = event.payload;
      return line(event, { icon: "note", text: t("item.memberAnswered", { name: name(event.actor), to: name(to), text }) });
    }
    case "team_posted": {
      const { topic, text } = event.payload;
      return line(event, { icon: "note", text: t("item.posted", { name: name(event.actor), topic, text }) });
    }
    case "message_passed": {
      const { to, text } = event.payload;
      return line(event, { icon: "ask", text: t("item.messagePassed", { name: name(event.actor), to: name(to), text }) });
    }
    case "drew": {
      const { choice, among, why } = event.payload;
      const details = { label: t("item.among"), files: among };
      return line(event, { icon: "note", text: t("item.drew", { choice, why }), details });
    }
    case "limit_reached": {
      const { agent, reason, to, untilMs } = event.payload;
      const time = untilMs ? new Date(untilMs).toLocaleTimeString() : "";
      const text = to
        ? t("item.limitHandedOver", { name: name(agent), to: name(to), reason })
        : t("item.limitWaits", { name: name(agent), time, reason });
      return line(event, { icon: "alert", tone: "warn", text });
    }
    case "worker_told": {
      const { agent, text } = event.payload;
      return line(event, { icon: "turn", tone: "accent", text: t("item.told", { name: name(agent), text }) });
    }
    case "task_answered": {
      const { taskId, summary } = event.payload;
      return line(event, { icon: "ok", tone: "ok", text: t("item.taskAnswered", { task: taskId, summary }), task: taskId });
    }
    case "run_parked": {
      const { person } = event.payload;
      const text = isYou(person) ? t("item.parkedForYou") : t("item.parked", { name: person });
      return line(event, { icon: "ask", tone: "warn", text });
    }
    case "run_interrupted":
      return line(event, { icon: "alert", tone: "warn", text: t("item.interrupted") });
    case "run_resumed":
      return line(event, { icon: "flag", text: t("item.resumed") });
    default:
      // Progress is shown while it lasts, and the beginning of an apply says nothing its end does
      // not say. A newer server may also send what this page does not know.
      return null;
  }
}

function testFacts(tests: TestsRun | null | undefined, t: Translate): readonly Fact[] {
  if (!tests) return [];
  const { passed, failed } = tests;
  const text = t("item.tests", { passed, total: passed + failed });
  return [{ text, tone: failed ? "danger" : "ok" }];
}

function message(text: string, t: Translate): Details | undefined {
  return text.trim() ? { label: t("item.message"), text: plain(text).trim() } : undefined;
}

function fileList(files: readonly string[], t: Translate): Details | undefined {
  return files.length ? { label: t("item.filesLabel"), files: files.map(plain) } : undefined;
}

function card(event: Recorded, t: Translate, { facts = [], ...words }: CardWords): Card {
  const { start, whole } = clipped(plain(words.body));
  const more = whole === undefined ? {} : { details: { label: t("item.showAll"), text: whole } };
  return { kind: "card", ...place(event), facts, ...words, title: plain(words.title), body: start, ...more };
}

function line(event: Recorded, { text, icon = "turn", tone = "muted", task, details }: LineWords): Line {
  return { kind: "line", ...place(event), text: plain(text), icon, tone, ...(task && { task }), ...(details && { details }) };
}

function place({ seq, ts, event, actor, provenance }: Recorded): Pick<Shown, Exclude<Common, "kind">> {
  return { seq, ts, event, actor, provenance };
}
