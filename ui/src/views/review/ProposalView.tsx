import { FileX } from "lucide-react";
import { useCallback, useMemo, useRef } from "react";
import { ApiError } from "../../api/client.ts";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/odd.ts";
import type { Entry } from "../../model/review/queue.ts";
import { lineOf, rowToSay } from "../../model/review/rows.ts";
import { countSeen, isSeen, nextUnseen } from "../../model/review/seen.ts";
import { type Names, nameOf, titleOf } from "../../model/words.ts";
import { Kbd } from "../../parts/Kbd.tsx";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { go, useRoute } from "../../shell/route.ts";
import { Diff, type DiffHandle } from "./Diff.tsx";
import { placeOf } from "./DiffRow.tsx";
import { Evidence } from "./Evidence.tsx";
import { FileTree } from "./FileTree.tsx";
import type { Panel } from "./ReviewView.tsx";
import { VerdictBar, type VerdictHandle } from "./VerdictBar.tsx";
import { type Reviewed, nextRow, rowOfFile, useReviewed } from "./reviewed.ts";
import { useLook } from "./store.ts";

interface Props {
  readonly entry: Entry;
  readonly entries: readonly Entry[];
  readonly names: Names;
  readonly onPanel: (panel: Panel) => void;
}

export function ProposalView(props: Props) {
  const t = useT();
  const { runId, taskId } = props.entry;
  const { args } = useRoute();
  const wanted = /^[1-9][0-9]{0,4}$/.test(args.attempt ?? "") ? Number(args.attempt) : undefined;
  const which = useMemo(() => ({ runId, taskId }), [runId, taskId]);
  const loaded = useReviewed(which, wanted, props.names);
  if (loaded.state === "loading") {
    return (
      <section className="review-proposal" data-panel="diff">
        <Skeleton rows={6} height={64} />
      </section>
    );
  }
  if (loaded.state === "broken" && isMissing(loaded.error)) {
    return (
      <section className="review-proposal" data-panel="diff">
        <EmptyState icon={FileX} title={t("review.noProposal", { task: plain(taskId) })} text={plain(props.entry.reason)} />
      </section>
    );
  }
  if (loaded.state === "broken") {
    return (
      <section className="review-proposal" data-panel="diff">
        <ErrorState title={t("review.cannotShow", { task: plain(taskId) })} error={loaded.error} onRetry={loaded.retry} />
      </section>
    );
  }
  return <There {...props} reviewed={loaded.reviewed} />;
}

const NOT_FOUND = 404;
const isMissing = (error: Error): boolean => error instanceof ApiError && error.status === NOT_FOUND;

function There({ entry, entries, names, onPanel, reviewed }: Props & { reviewed: Reviewed }) {
  const diff = useRef<DiffHandle>(null);
  const verdict = useRef<VerdictHandle>(null);
  const { rows, files } = reviewed;
  const toFile = useCallback(
    (file: number) => {
      onPanel("diff");
      reveal(diff, rowOfFile(rows, file));
    },
    [rows, onPanel],
  );
  const toPlace = (path: string, line: number | null) => {
    const file = files.findIndex((one) => one.path === path);
    if (file < 0) return;
    const row = rows.findIndex(
      (one) => one.file === file && ((one.kind === "line" && one.line.fresh === line) || (one.kind === "pair" && one.right?.fresh === line)),
    );
    onPanel("diff");
    reveal(diff, row < 0 ? rowOfFile(rows, file) : row);
  };
  useActions(useReviewActions({ entry, entries, reviewed, diff, verdict, toFile }));

  const said = useMemo(() => {
    const counts = new Map<string, number>();
    const add = (path: string) => counts.set(path, (counts.get(path) ?? 0) + 1);
    for (const { path } of [...reviewed.comments, ...reviewed.adrift]) add(path);
    for (const { finding } of reviewed.findings) add(finding.location?.file ?? "");
    return counts;
  }, [reviewed.comments, reviewed.adrift, reviewed.findings]);

  return (
    <>
      <section className="review-proposal" aria-labelledby="proposal-title">
        <Head reviewed={reviewed} names={names} />
        <FileTree
          files={files}
          current={reviewed.file}
          whole={reviewed.whole}
          seen={reviewed.desk.seen}
          leftOut={reviewed.desk.leftOut}
          said={said}
          onGo={toFile}
          onSeen={reviewed.markSeen}
        />
        <Diff key={`${reviewed.attempt} ${reviewed.since ?? ""}`} reviewed={reviewed} ref={diff} />
        <VerdictBar key={reviewed.proposal.askId ?? "decided"} reviewed={reviewed} names={names} reader={entry.reader} problem={entry.problem} ref={verdict} />
      </section>
      <Evidence reviewed={reviewed} names={names} onPlace={toPlace} />
    </>
  );
}

/** On a narrow page the diff has no height before its panel is shown. */
function reveal(diff: React.RefObject<DiffHandle | null>, row: number): void {
  diff.current?.reveal(row);
  if (window.matchMedia("(max-width: 1120px)").matches) requestAnimationFrame(() => diff.current?.reveal(row));
}

function Head({ reviewed, names }: { reviewed: Reviewed; names: Names }) {
  const t = useT();
  const { proposal, attempt, all, desk, since, isSince, moved, split, adrift } = reviewed;
  const { look } = useLook();
  const { attempts = [], status } = proposal;
  const last = attempts.length;
  const earlier = earlierOf(reviewed);
  const tone = { waiting: "warn", stale: "warn", conflicts: "danger", applied: "ok", rejected: "danger", undone: "muted", revised: "warn" } as const;
  return (
    <header className="review-head">
      <div className="review-bar">
        <code className="subtle">
          {plain(proposal.taskId)} {last > 1 && `r${attempt}`}
        </code>
        <h2 id="proposal-title" className="ellipsis" title={plain(proposal.summary ?? "")}>
          {plain(titleOf(proposal.summary ?? "", titleOf(proposal.instruction ?? "", proposal.taskId)))}
        </h2>
        <span className="pill" data-tone={Object.hasOwn(tone, status) ? tone[status as keyof typeof tone] : "muted"}>
          {proposal.askId != null && attempt === last ? t("review.waitsForYou") : t(`review.state.${status}`)}
        </span>
        <span className="subtle ellipsis review-by">{plain(nameOf(names, proposal.worker))}</span>
        <span className="grow" />
        <span className="subtle num review-count">{t("review.seenCount", { seen: countSeen(desk.seen, all), total: all.length })}</span>
        {attempt > 1 && (
          <div className="seg" role="group" aria-label={t("review.compare")}>
            <button
              type="button"
              aria-pressed={!isSince}
              onClick={() => {
                reviewed.showSince(null);
              }}
            >
              {t("review.fromBase")}
            </button>
            <button
              type="button"
              aria-pressed={isSince}
              title={t("review.sinceTitle", { number: earlier })}
              onClick={() => {
                reviewed.showSince(earlier);
              }}
            >
              {t("review.since", { number: earlier })} <Kbd keys="s" />
            </button>
          </div>
        )}
        <div className="seg wide" role="group" aria-label={t("review.layout")}>
          <button
            type="button"
            aria-pressed={!split}
            onClick={() => {
              look({ split: false });
            }}
          >
            {t("review.unified")}
          </button>
          <button
            type="button"
            aria-pressed={split}
            onClick={() => {
              look({ split: true });
            }}
          >
            {t("review.split")}
          </button>
        </div>
      </div>
      {isSince && moved.length > 0 && <p className="review-note">{t("review.moved", { files: moved.map(plain).join(", ") })}</p>}
      {isSince && reviewed.files.length === 0 && <p className="review-note">{t("review.nothingSince", { number: since ?? 0 })}</p>}
      {adrift.length > 0 && (
        <details className="review-note">
          <summary>{t("review.adrift", { count: adrift.length })}</summary>
          <ul>
            {adrift.map((comment) => (
              <li key={comment.id}>
                <code dir="ltr">
                  {plain(comment.path)}:{comment.line}
                </code>{" "}
                {plain(comment.text)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </header>
  );
}

/** The attempt to compare with: the one that was looked at, or the one before. */
const earlierOf = ({ since, desk, attempt }: Reviewed): number =>
  since ?? (desk.before > 0 && desk.before < attempt ? desk.before : attempt - 1);

interface Hands {
  readonly entry: Entry;
  readonly entries: readonly Entry[];
  readonly reviewed: Reviewed;
  readonly diff: React.RefObject<DiffHandle | null>;
  readonly verdict: React.RefObject<VerdictHandle | null>;
  readonly toFile: (file: number) => void;
}

function useReviewActions({ entry, entries, reviewed, diff, verdict, toFile }: Hands): readonly Action[] {
  const t = useT();
  const { look } = useLook();
  return useMemo((): readonly Action[] => {
    const group = t("review.group");
    const { rows, cursor, file, files, desk, canSay, attempt, isSince, split } = reviewed;
    const notMine = canSay ? undefined : t("review.notYours");
    const step = (by: 1 | -1) => {
      diff.current?.reveal(nextRow(rows, cursor, by, ["hunk", "content", "mode"]));
    };
    const toProposal = (by: 1 | -1) => {
      const at = entries.findIndex(({ runId, taskId }) => runId === entry.runId && taskId === entry.taskId);
      const next = entries[at + by];
      if (next) go({ view: "review", run: next.runId, args: { task: next.taskId } });
    };
    const markSeen = () => {
      const shown = files[file];
      const one = shown && reviewed.whole(shown);
      if (!one) return;
      const is = !isSeen(desk.seen, one);
      reviewed.markSeen(one, is);
      const next = is ? nextUnseen(desk.seen, files.map((other) => reviewed.whole(other) ?? other), file) : null;
      if (next !== null && next !== file) toFile(next);
    };
    const writeHere = () => {
      const at = rowToSay(rows, cursor);
      const line = lineOf(rows[at]);
      const path = files[rows[at]?.file ?? -1]?.path;
      const place = line && path !== undefined ? placeOf(path, line, isSince) : null;
      if (at !== cursor) diff.current?.reveal(at < 0 ? nextRow(rows, cursor, 1, ["line", "pair"]) : at);
      if (place && line) reviewed.say(place, line.text);
    };
    const takeHere = () => {
      const row = rows[cursor];
      const one = files[file];
      if (!one) return;
      const out = desk.leftOut[one.path];
      const number = row?.kind === "hunk" ? row.hunk.number : row?.kind === "line" || row?.kind === "pair" ? row.hunk : null;
      if (number !== null && !one.whole && one.hunks.length > 1) {
        reviewed.takeHunk(one, number, out === "all" || (Array.isArray(out) && out.includes(number)));
      } else reviewed.takeFile(one, out === "all");
    };
    const give = (decision: "apply" | "revise" | "reject", keys: string): Action => ({
      id: `review.${decision}`,
      title: t(`review.do.${decision}`),
      group,
      keys,
      disabled: notMine,
      run: () => {
        verdict.current?.begin(decision);
      },
    });
    return [
      { id: "review.next", title: t("review.do.next"), group, keys: "j", run: () => { step(1); } },
      { id: "review.before", title: t("review.do.before"), group, keys: "k", run: () => { step(-1); } },
      { id: "review.lines", title: t("review.do.lines"), group, keys: "↓ ↑", hidden: true, run: () => undefined },
      { id: "review.nextFile", title: t("review.do.nextFile"), group, keys: "n", run: () => { toFile(Math.min(files.length - 1, cursor < 0 ? 0 : file + 1)); } },
      { id: "review.fileBefore", title: t("review.do.fileBefore"), group, keys: "p", run: () => { toFile(Math.max(0, file - 1)); } },
      { id: "review.seen", title: t("review.do.seen"), group, keys: "v", run: markSeen },
      give("apply", "a"),
      give("revise", "r"),
      give("reject", "x"),
      { id: "review.comment", title: t("review.do.comment"), group, keys: "c", disabled: notMine, run: writeHere },
      { id: "review.take", title: t("review.do.take"), group, keys: "t", disabled: notMine, run: takeHere },
      {
        id: "review.since",
        title: t("review.do.since"),
        group,
        keys: "s",
        disabled: attempt > 1 ? undefined : t("review.firstAttempt"),
        run: () => { reviewed.showSince(isSince ? null : earlierOf(reviewed)); },
      },
      { id: "review.split", title: t("review.do.split"), group, keys: "u", run: () => { look({ split: !split }); } },
      { id: "review.undo", title: t("review.do.undo"), group, keys: "z", run: () => { verdict.current?.undo(); } },
      { id: "review.nextProposal", title: t("review.do.nextProposal"), group, keys: "]", run: () => { toProposal(1); } },
      { id: "review.proposalBefore", title: t("review.do.proposalBefore"), group, keys: "[", run: () => { toProposal(-1); } },
    ];
  }, [t, entry, entries, reviewed, diff, verdict, toFile, look]);
}
