// One proposal as it is being reviewed: what the server tells of it, what the person has done with it
// so far, and the rows that are drawn. Everything below the view takes what it needs from here.

import { useCallback, useEffect, useMemo, useState } from "react";
import type { Finding, ShownProposal } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { choicesOf, countChosen, withFile, withHunk } from "../../model/review/choice.ts";
import { type Comment, type CommentNews, commented, keyOf, placed } from "../../model/review/comments.ts";
import type { FilePatch } from "../../model/review/patch.ts";
import { type Place, type Row, linesOf, placeKey, rowsOf } from "../../model/review/rows.ts";
import { type Since, changedSince } from "../../model/review/since.ts";
import { withSeen } from "../../model/review/seen.ts";
import { openFindings } from "../../model/review/verdict.ts";
import { type Names, nameOf } from "../../model/words.ts";
import { type Which, usePatch, useProposal } from "./data.ts";
import { type Desk, change, deskName, useDesk, useLook } from "./store.ts";

export interface Writing {
  readonly place: Place;
  readonly quote: string;
  /** Of the comment that is changed; a new one has none yet. */
  readonly id?: number;
}

export interface PlacedFinding {
  readonly key: string;
  readonly finding: Finding;
  readonly by: string;
}

export interface Reviewed {
  readonly which: Which;
  readonly proposal: ShownProposal;
  readonly attempt: number;
  /** All files of the attempt, and those that are drawn: only what changed since an earlier one. */
  readonly all: readonly FilePatch[];
  readonly files: readonly FilePatch[];
  readonly rows: readonly Row[];
  readonly since: number | null;
  readonly isSince: boolean;
  readonly moved: readonly string[];
  readonly split: boolean;
  readonly desk: Desk;
  readonly comments: readonly Comment[];
  readonly adrift: readonly Comment[];
  readonly findings: readonly PlacedFinding[];
  readonly folded: ReadonlySet<string>;
  /** The row and the file that the keys are about; -1 before any was looked at. */
  readonly cursor: number;
  readonly file: number;
  readonly writing: Writing | null;
  /** It waits for this person, at its latest attempt. */
  readonly canSay: boolean;
  readonly canChoose: boolean;
  readonly setCursor: (key: string | null) => void;
  readonly fold: (path: string, is: boolean) => void;
  readonly open: (path: string) => void;
  /** A file as the attempt has it; none where the attempt leaves it alone. */
  readonly whole: (file: FilePatch) => FilePatch | undefined;
  readonly markSeen: (file: FilePatch, is: boolean) => void;
  readonly takeFile: (file: FilePatch, take: boolean) => void;
  readonly takeHunk: (file: FilePatch, hunk: number, take: boolean) => void;
  readonly comment: (news: CommentNews) => void;
  readonly say: (place: Place, quote: string) => void;
  readonly write: (writing: Writing | null) => void;
  readonly showSince: (attempt: number | null) => void;
}

export type Loaded =
  | { readonly state: "loading" }
  | { readonly state: "broken"; readonly error: Error; readonly retry: () => void }
  | { readonly state: "there"; readonly reviewed: Reviewed };

const NO_FILES: readonly FilePatch[] = [];

export function useReviewed(which: Which, wanted: number | undefined, names: Names): Loaded {
  const { runId, taskId } = which;
  const latest = useProposal(which);
  const named = useProposal(which, wanted ?? latest.data?.attempt);
  const isLatest = wanted === undefined || wanted === latest.data?.attempt;
  const told = isLatest ? latest : named;
  const proposal = told.data;
  const attempt = proposal?.attempt;
  const patch = usePatch(which, attempt);
  const name = deskName(runId, taskId);
  const desk = useDesk(name);
  const { split } = useLook();

  const [compared, compare] = useState<{ readonly attempt: number; readonly since: number | null } | null>(null);
  const canSay = isLatest && proposal?.askId != null;
  const since = sinceOf(attempt, canSay, desk.before, compared);
  const earlier = usePatch(which, since ?? undefined);
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [cursorKey, setCursor] = useState<string | null>(null);
  const [writing, write] = useState<Writing | null>(null);

  const all = patch.data ?? NO_FILES;
  const between = useMemo((): Since | null => (since !== null && earlier.data ? changedSince(earlier.data, all) : null), [since, earlier.data, all]);
  const files = between?.files ?? all;
  const spots = useMemo(() => placed(desk.comments, all), [desk.comments, all]);
  const findings = useMemo(() => (proposal ? findingsOn(proposal, all, names) : []), [proposal, all, names]);
  const threads = useMemo(
    () => new Set([...spots.comments.map(keyOf), ...findings.map(({ key }) => key), ...(writing ? [placeKey(writing.place)] : [])]),
    [spots.comments, findings, writing],
  );
  const rows = useMemo(() => rowsOf(files, { split, folded, threads, opened }), [files, split, folded, threads, opened]);
  const places = useMemo(() => new Map(rows.map((row, index) => [row.key, index])), [rows]);
  const cursor = cursorKey === null ? -1 : (places.get(cursorKey) ?? -1);

  // Looking at it is what "since I looked" means; the first look at an attempt offers what is new.
  const looked = desk.looked;
  useEffect(() => {
    if (attempt === undefined || !patch.data || looked >= attempt) return;
    change(name, () => ({ looked: attempt, before: looked }));
  }, [attempt, patch.data, looked, name]);

  const fold = useCallback((path: string, is: boolean) => {
    setFolded((before) => withMember(before, path, is));
  }, []);
  const open = useCallback((path: string) => {
    setOpened((before) => withMember(before, path, true));
  }, []);
  const markSeen = useCallback(
    (file: FilePatch, is: boolean) => {
      change(name, ({ seen }) => ({ seen: withSeen(seen, file, is) }));
      setFolded((before) => withMember(before, file.path, is));
    },
    [name],
  );
  const takeFile = useCallback(
    (file: FilePatch, take: boolean) => {
      change(name, ({ leftOut }) => ({ leftOut: withFile(leftOut, file, take) }));
    },
    [name],
  );
  const takeHunk = useCallback(
    (file: FilePatch, hunk: number, take: boolean) => {
      change(name, ({ leftOut }) => ({ leftOut: withHunk(leftOut, file, hunk, take) }));
    },
    [name],
  );
  const comment = useCallback(
    (news: CommentNews) => {
      change(name, ({ comments }) => ({ comments: commented(comments, news) }));
    },
    [name],
  );
  const say = useCallback((place: Place, quote: string) => {
    write({ place, quote });
  }, []);

  const showSince = useCallback(
    (earlier: number | null) => {
      if (attempt !== undefined) compare({ attempt, since: earlier });
    },
    [attempt],
  );
  const whole = useCallback((file: FilePatch) => all.find(({ path }) => path === file.path), [all]);

  const error = told.error ?? patch.error ?? earlier.error;
  if (error) {
    const retry = () => {
      void told.refetch();
      void patch.refetch();
      if (since !== null) void earlier.refetch();
    };
    return { state: "broken", error, retry };
  }
  if (!proposal || attempt === undefined || !patch.data) return { state: "loading" };
  const reviewed: Reviewed = {
    which,
    proposal,
    attempt,
    all,
    files,
    rows,
    since,
    isSince: between !== null,
    moved: between?.moved ?? [],
    split,
    desk,
    comments: spots.comments,
    adrift: spots.adrift,
    findings,
    folded,
    cursor,
    file: rows[cursor]?.file ?? 0,
    writing,
    canSay,
    canChoose: canSay && between === null,
    setCursor,
    fold,
    open,
    whole,
    markSeen,
    takeFile,
    takeHunk,
    comment,
    say,
    write,
    showSince,
  };
  return { state: "there", reviewed };
}

/** As chosen, or else what is new to this person. */
function sinceOf(
  attempt: number | undefined,
  waits: boolean,
  before: number,
  compared: { readonly attempt: number; readonly since: number | null } | null,
): number | null {
  if (attempt === undefined) return null;
  const since = compared?.attempt === attempt ? compared.since : waits ? before : null;
  return since !== null && since > 0 && since < attempt ? since : null;
}

function withMember(set: ReadonlySet<string>, member: string, is: boolean): ReadonlySet<string> {
  if (set.has(member) === is) return set;
  return new Set(is ? [...set, member] : [...set].filter((other) => other !== member));
}

/** Open findings that name a line which the change shows. */
function findingsOn(proposal: ShownProposal, files: readonly FilePatch[], names: Names): readonly PlacedFinding[] {
  const by = nameOf(names, proposal.reviews?.findLast(({ findings = [] }) => findings.length > 0)?.by ?? "");
  return openFindings(proposal).flatMap((finding): readonly PlacedFinding[] => {
    const place = placeOfFinding(finding, files);
    return place ? [{ key: placeKey(place), finding, by }] : [];
  });
}

export function placeOfFinding(finding: Finding, files: readonly FilePatch[]): Place | null {
  const { file: path, line_start: line } = finding.location ?? {};
  const file = files.find((one) => one.path === path);
  if (!file || line == null) return null;
  const isShown = file.hunks.some((hunk) => linesOf(hunk).some(({ fresh }) => fresh === line));
  return isShown ? { path: file.path, side: "new", line } : null;
}

/** The next change, from a row on; the last one stays the last. */
export function nextRow(rows: readonly Row[], from: number, step: 1 | -1, kinds: readonly Row["kind"][]): number {
  for (let index = from + step; index >= 0 && index < rows.length; index += step) {
    const row = rows[index];
    if (row && kinds.includes(row.kind)) return index;
  }
  return from;
}

export const rowOfFile = (rows: readonly Row[], file: number): number =>
  rows.findIndex((row) => row.kind === "file" && row.file === file);

export function useParts(reviewed: Reviewed) {
  const t = useT();
  const { desk, all } = reviewed;
  const choices = useMemo(() => choicesOf(desk.leftOut, all), [desk.leftOut, all]);
  const chosen = countChosen(desk.leftOut, all);
  const what = choices === undefined ? t("review.files", { count: all.length }) : t("review.part", { chosen, total: all.length });
  return { choices, chosen, what };
}
