import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { CircleDashed, Combine } from "lucide-react";
import type { ShownProposal } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/odd.ts";
import type { Entry } from "../../model/review/queue.ts";
import { overlapsOf } from "../../model/review/standing.ts";
import { type Names, clockTime, nameOf, titleOf } from "../../model/words.ts";
import { Badge } from "../../parts/Badge.tsx";
import { statusTone } from "../../parts/Pill.tsx";
import { addressOf } from "../../shell/route.ts";
import { proposalQuery } from "./data.ts";

interface Props {
  readonly entries: readonly Entry[];
  readonly chosen: Entry | null;
  readonly names: Names;
  readonly onChoose: () => void;
}

/** What is not settled is asked about, so that its badges are true before it is opened. */
const MOST_ASKED = 40;

export function Queue({ entries, chosen, names, onChoose }: Props) {
  const t = useT();
  const [turn, setTurn] = useState<"mine" | "others" | null>(null);
  const open = entries.filter(({ group }) => group !== "settled");
  const asked = open.slice(0, MOST_ASKED);
  const told = useQueries({ queries: asked.map((entry) => proposalQuery(entry)) });
  const details = new Map(asked.map((entry, index) => [entry, told[index]?.data]));
  const count = (group: Entry["group"]) => entries.filter((entry) => entry.group === group).length;
  const shown = entries.filter(({ group }) => turn === null || group === turn);
  return (
    <aside className="review-queue" aria-label={t("review.queue")} data-panel="queue">
      <div className="review-bar">
        <h2>
          {t("review.queue")} <span className="subtle num">{open.length}</span>
        </h2>
        <div className="seg" role="group" aria-label={t("review.whose")}>
          {(["mine", "others"] as const).map((group) => (
            <button
              key={group}
              type="button"
              aria-pressed={turn === group}
              onClick={() => {
                setTurn(turn === group ? null : group);
              }}
            >
              {t(`review.${group}`)} <span className="num">{count(group)}</span>
            </button>
          ))}
        </div>
      </div>
      <div className="review-scroll">
        {(["mine", "others", "settled"] as const).map((group) => {
          const some = shown.filter((entry) => entry.group === group);
          if (!some.length) return null;
          return (
            <section key={group} aria-labelledby={`queue-${group}`}>
              <h3 id={`queue-${group}`} className="queue-cap">
                {t(`review.group.${group}`)}
              </h3>
              <ul>
                {some.map((entry) => (
                  <Row
                    key={`${entry.runId}/${entry.taskId}`}
                    entry={entry}
                    isChosen={entry.runId === chosen?.runId && entry.taskId === chosen.taskId}
                    detail={details.get(entry)}
                    names={names}
                    onChoose={onChoose}
                  />
                ))}
              </ul>
            </section>
          );
        })}
      </div>
    </aside>
  );
}

interface RowProps {
  readonly entry: Entry;
  readonly isChosen: boolean;
  readonly detail: ShownProposal | undefined;
  readonly names: Names;
  readonly onChoose: () => void;
}

function Row({ entry, isChosen, detail, names, onChoose }: RowProps) {
  const t = useT();
  const { runId, taskId, attempts, worker, title, status, group, reader, reason } = entry;
  const made = detail ? Date.parse(detail.createdAt) : NaN;
  return (
    <li>
      <a
        className="queue-row"
        href={addressOf({ view: "review", run: runId, args: { task: taskId } })}
        aria-current={isChosen ? "true" : undefined}
        data-group={group}
        data-task={taskId}
        onClick={onChoose}
      >
        <span className="row queue-meta">
          <code className="subtle">
            {plain(taskId)}
            {attempts > 1 && ` r${attempts}`}
          </code>
          <span className="subtle ellipsis">{plain(nameOf(names, worker))}</span>
          <span className="grow" />
          {made > 0 && <time className="subtle num">{clockTime(made)}</time>}
        </span>
        <span className="queue-title">{plain(titleOf(detail?.summary ?? "", titleOf(title, taskId)))}</span>
        <span className="queue-tags">
          {detail && <Delta files={detail.files ?? []} />}
          {group === "settled" && <Badge tone={statusTone(status)}>{t(`status.${status}`)}</Badge>}
          {detail && <Signs detail={detail} />}
          {group === "others" && <Badge tone="accent">{reader ? t("review.reads", { who: plain(nameOf(names, reader)) }) : t(`status.${status}`)}</Badge>}
        </span>
        {group === "settled" && status !== "applied" && reason && <span className="queue-reason clamp">{plain(reason)}</span>}
      </a>
    </li>
  );
}

export function Delta({ files }: { files: readonly { readonly added?: number; readonly removed?: number }[] }) {
  const t = useT();
  const sum = (side: "added" | "removed") => files.reduce((total, file) => total + (file[side] ?? 0), 0);
  const [added, removed] = [sum("added"), sum("removed")];
  return (
    <span className="delta num" title={t("review.delta", { added, removed })}>
      <span data-tone="ok">+{added}</span> <span data-tone="danger">−{removed}</span>
    </span>
  );
}

function Signs({ detail }: { detail: ShownProposal }) {
  const t = useT();
  const overlaps = overlapsOf(detail);
  const checks = detail.evidence?.checks ?? [];
  const red = checks.filter(({ after }) => !after.passed).length;
  return (
    <>
      {overlaps.others.map((other) => (
        <Badge key={other} tone="warn" title={t("review.overlapTitle", { other: plain(other) })}>
          <Combine size={12} aria-hidden /> {plain(other)}, {t("review.files", { count: overlaps.files(other) })}
        </Badge>
      ))}
      {detail.outlook?.fitness === "conflicts" && <Badge tone="danger">{t("review.conflicts")}</Badge>}
      {detail.outlook?.fitness === "stale" && <Badge tone="warn">{t("review.stale")}</Badge>}
      {(detail.breaches?.length ?? 0) > 0 && <Badge tone="danger">{t("review.unsafe")}</Badge>}
      {red > 0 && <Badge tone="danger">{t("review.red", { count: red })}</Badge>}
      {checks.length > 0 && red === 0 && (
        <Badge tone="ok">
          {t("review.green", { passed: checks.length, total: checks.length })}
        </Badge>
      )}
      {detail.evidenceStatus === "unverified" && (
        <Badge>
          <CircleDashed size={12} aria-hidden /> {t("review.unverified")}
        </Badge>
      )}
    </>
  );
}
