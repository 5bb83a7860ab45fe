import { CircleCheck, Undo2 } from "lucide-react";
import { type KeyboardEvent, useEffect, useImperativeHandle, useRef, useState, type Ref } from "react";
import type { Decision } from "../../api/types.ts";
import { type Translate, useT } from "../../i18n/index.ts";
import { saidOf } from "../../model/review/comments.ts";
import { plain, plainName } from "../../model/odd.ts";
import { type Objection, objections, standing } from "../../model/review/verdict.ts";
import type { Names } from "../../model/words.ts";
import { nameOf, titleOf } from "../../model/words.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Button } from "../../parts/Button.tsx";
import { focusView } from "../../parts/lastFocus.ts";
import { complain, toast } from "../../parts/toast.tsx";
import { answer, undo } from "./data.ts";
import { type Reviewed, useParts } from "./reviewed.ts";
import { Words } from "../../parts/Words.tsx";
import { Visible } from "../../parts/Visible.tsx";
import { change, deskName } from "./store.ts";

export interface VerdictHandle {
  /** Begin this verdict: its words are asked for, or Enter gives it. */
  readonly begin: (decision: Decision) => void;
  readonly undo: () => void;
}

interface Props {
  readonly reviewed: Reviewed;
  readonly names: Names;
  readonly reader: string | undefined;
  /** Why the person is asked again. */
  readonly problem?: string | undefined;
  readonly ref: Ref<VerdictHandle>;
}

export function VerdictBar({ reviewed, names, reader, problem, ref }: Props) {
  if (reviewed.canSay) return <Deciding reviewed={reviewed} problem={problem} ref={ref} />;
  return <Decided reviewed={reviewed} names={names} reader={reader} ref={ref} />;
}

function Deciding({ reviewed, problem, ref }: Pick<Props, "reviewed" | "problem" | "ref">) {
  const t = useT();
  const { proposal, desk, which, comments, adrift } = reviewed;
  const name = deskName(which.runId, which.taskId);
  const { choices, chosen, what } = useParts(reviewed);
  const said = comments.length + adrift.length;
  const found = objections(proposal, chosen);
  const [begun, begin] = useState<Decision | null>(null);
  const [isMissing, setMissing] = useState(false);
  const [sending, setSending] = useState<Decision | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const applyButton = useRef<HTMLButtonElement>(null);
  const draft = { reason: desk.reason, comments: said, chosen };

  const start = (decision: Decision) => {
    begin(decision);
    setMissing(false);
    const stands = standing(decision, found, draft);
    if (decision === "apply" && stands.state !== "reason") applyButton.current?.focus();
    else field.current?.focus();
  };

  const send = async (decision: Decision) => {
    if (sending !== null) return;
    const stands = standing(decision, found, draft);
    if (stands.state !== "ready") {
      begin(decision);
      setMissing(stands.state === "reason");
      if (stands.state === "reason") field.current?.focus();
      return;
    }
    setSending(decision);
    try {
      await answer(proposal.askId ?? "", {
        decision,
        reason: desk.reason.trim(),
        ...(said > 0 && { comments: saidOf([...comments, ...adrift]) }),
        ...(decision === "apply" && choices !== undefined && { choose: choices }),
      });
      change(name, () => ({ comments: [], leftOut: {}, reason: "" }));
      focusView();
      toast(t(`review.sent.${decision}`, { task: plain(which.taskId) }));
    } catch (error) {
      complain(error);
    } finally {
      setSending(null);
      begin(null);
    }
  };

  useImperativeHandle(ref, () => ({
    begin: start,
    undo: () => {
      // Nothing of it has landed.
    },
  }));

  const typed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (begun) void send(begun);
    } else if (event.key === "Escape") {
      begin(null);
      field.current?.blur();
    }
  };

  const toApply = standing("apply", found, draft);
  const final = toApply.state === "blocked" ? toApply.by : undefined;
  return (
    <div className="verdict" role="group" aria-label={t("review.verdict")}>
      {problem && (
        <p className="verdict-note" data-tone="warn">
          <Visible text={t("review.askedAgain", { why: problem })} />
        </p>
      )}
      {proposal.derivedFrom && (
        <p className="verdict-note">{t("review.aboutPart", { files: proposal.derivedFrom.chosen.map(({ path }) => plainName(path)).join(", ") })}</p>
      )}
      {found.length > 0 && (
        <ul className="objections">
          {found.map((one) => (
            <li key={one.kind}>
              <Badge tone={one.kind === "nothing" ? "warn" : "danger"}>
                <span>
                  <Words text={objectionWords(one, t)} />
                </span>
              </Badge>
            </li>
          ))}
        </ul>
      )}
      <div className="verdict-row">
        <div className="verdict-reason">
          <textarea
            ref={field}
            className="input"
            rows={1}
            value={desk.reason}
            aria-label={t("review.reason")}
            aria-invalid={isMissing}
            aria-describedby={isMissing ? "reason-missing" : undefined}
            placeholder={t(begun ? `review.reasonFor.${begun}` : "review.reasonHint")}
            onChange={(event) => {
              const reason = event.target.value;
              change(name, () => ({ reason }));
              if (reason.trim()) setMissing(false);
            }}
            onKeyDown={typed}
          />
          {isMissing && (
            <p id="reason-missing" className="field-error" role="alert">
              {t(begun === "apply" ? "review.reasonToApply" : "review.reasonMissing")}
            </p>
          )}
        </div>
        {said > 0 && <Badge tone="accent">{t("review.commentsGo", { count: said })}</Badge>}
        <Button look="no" keys="x" busy={sending === "reject"} aria-pressed={begun === "reject"} onClick={() => void send("reject")}>
          {t("review.reject")}
        </Button>
        <Button look="warn" keys="r" busy={sending === "revise"} aria-pressed={begun === "revise"} onClick={() => void send("revise")}>
          {t("review.revise")}
        </Button>
        <Button
          ref={applyButton}
          look="apply"
          keys="a"
          busy={sending === "apply"}
          blocked={final && objectionWords(final, t)}
          onClick={() => void send("apply")}
        >
          <CircleCheck size={14} aria-hidden /> {choices === undefined ? t("review.apply") : t("review.applyPart")}
          <span className="unseen">{what}</span>
        </Button>
      </div>
      {choices !== undefined && <p className="verdict-note">{t("review.partNote", { what })}</p>}
    </div>
  );
}

function objectionWords(one: Objection, t: Translate): string {
  switch (one.kind) {
    case "unsafe":
      return t("review.blocked.unsafe", { why: plain(one.detail) });
    case "conflicts":
      return t("review.blocked.conflicts", { files: plain(one.detail) });
    case "nothing":
      return t("review.blocked.nothing");
    case "red":
      return t("review.blocked.red", { checks: one.checks.map(plain).join(", ") });
    case "mustFix":
      return t("review.blocked.mustFix", { count: one.count, what: plain(titleOf(one.first, "")).replace(/[.。]$/, "") });
  }
}

function Decided({ reviewed, names, reader, ref }: Props) {
  const t = useT();
  const { proposal, which, attempt } = reviewed;
  const { attempts = [], status } = proposal;
  const [asks, setAsks] = useState(false);
  const [busy, setBusy] = useState(false);
  const confirm = useRef<HTMLButtonElement>(null);
  const canUndo = status === "applied" && attempt === attempts.length;
  const round = attempts.find(({ number }) => number === attempt);

  const begin = () => {
    if (!canUndo) return;
    setAsks(true);
  };
  useEffect(() => {
    if (asks) confirm.current?.focus();
  }, [asks]);
  useImperativeHandle(ref, () => ({
    begin: () => {
      // It is decided, or somebody else decides.
    },
    undo: begin,
  }));

  const takeBack = async () => {
    setBusy(true);
    try {
      const { undone } = await undo(which);
      const problem = undone.find((one) => one.problem)?.problem;
      if (problem) complain(new Error(problem));
      else toast(t("review.undone", { task: plain(which.taskId) }));
      focusView();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
      setAsks(false);
    }
  };

  const isOld = attempt < attempts.length;
  return (
    <div className="verdict" data-settled role="group" aria-label={t("review.verdict")}>
      <div className="verdict-row">
        <div className="verdict-reason">
          <p>
            <strong>{isOld ? t("review.oldAttempt", { number: attempt, last: attempts.length }) : t(`review.state.${status}`)}</strong>{" "}
            {status === "waiting" && !isOld && (
              <span className="subtle">{reader === undefined ? t("review.notYours") : t("review.reads", { who: plain(nameOf(names, reader)) })}</span>
            )}
          </p>
          {round?.reason && (
            <p className="said subtle verdict-why">
              <Words text={round.reason} />
            </p>
          )}
        </div>
        {canUndo &&
          (asks ? (
            <>
              <span className="subtle">{t("review.undoSure", { count: (proposal.files ?? []).length })}</span>
              <Button
                look="ghost"
                onClick={() => {
                  setAsks(false);
                }}
              >
                {t("cancel")}
              </Button>
              <Button ref={confirm} look="danger" busy={busy} onClick={() => void takeBack()}>
                {t("review.undo")}
              </Button>
            </>
          ) : (
            <Button keys="z" onClick={begin}>
              <Undo2 size={14} aria-hidden /> {t("review.undo")}
            </Button>
          ))}
      </div>
    </div>
  );
}
