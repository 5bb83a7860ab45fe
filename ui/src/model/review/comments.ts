// What a person says about lines, collected until it goes to the worker with the verdict.

import type { FilePatch } from "./patch.ts";
import { type Line, type Place, type Side, linesOf, placeKey } from "./rows.ts";

export interface Comment {
  readonly id: number;
  readonly path: string;
  readonly side: Side;
  readonly line: number;
  /** The line itself, by which the comment finds its place in a later attempt. */
  readonly quote: string;
  readonly text: string;
}

export type CommentNews =
  | { readonly type: "said"; readonly place: Place; readonly quote: string; readonly text: string }
  | { readonly type: "changed"; readonly id: number; readonly text: string }
  | { readonly type: "removed"; readonly id: number };

export const LONGEST_COMMENT = 4000;

export function commented(comments: readonly Comment[], news: CommentNews): readonly Comment[] {
  switch (news.type) {
    case "said": {
      const text = news.text.trim().slice(0, LONGEST_COMMENT);
      if (!text) return comments;
      const id = comments.reduce((most, comment) => Math.max(most, comment.id), 0) + 1;
      return [...comments, { id, ...news.place, quote: news.quote, text }];
    }
    case "changed": {
      const text = news.text.trim().slice(0, LONGEST_COMMENT);
      if (!text) return comments.filter(({ id }) => id !== news.id);
      return comments.map((comment) => (comment.id === news.id ? { ...comment, text } : comment));
    }
    case "removed":
      return comments.filter(({ id }) => id !== news.id);
  }
}

export const keyOf = (comment: Comment): string => placeKey(comment);

export interface Placed {
  readonly comments: readonly Comment[];
  /** Those whose line is not in the patch any more. */
  readonly adrift: readonly Comment[];
}

/** The comments where their lines are now, after the patch has changed under them. */
export function placed(comments: readonly Comment[], files: readonly FilePatch[]): Placed {
  const found: Comment[] = [];
  const adrift: Comment[] = [];
  for (const comment of comments) {
    const line = lineOf(comment, files);
    if (line === null) adrift.push(comment);
    else found.push(line === comment.line ? comment : { ...comment, line });
  }
  return { comments: found, adrift };
}

function lineOf(comment: Comment, files: readonly FilePatch[]): number | null {
  const file = files.find(({ path }) => path === comment.path);
  const lines = file ? file.hunks.flatMap(linesOf) : [];
  const number = (line: Line): number => (comment.side === "old" ? line.old : line.fresh);
  const alike = lines.filter((line) => number(line) > 0 && line.text === comment.quote).map(number);
  if (!alike.length) return null;
  return alike.reduce((best, line) => (Math.abs(line - comment.line) < Math.abs(best - comment.line) ? line : best));
}

/** As the server takes them with a verdict. */
export interface Said {
  readonly path: string;
  readonly line: number;
  readonly side: Side;
  readonly quote: string;
  readonly text: string;
}

export const saidOf = (comments: readonly Comment[]): readonly Said[] =>
  comments.map(({ path, line, side, quote, text }) => ({ path, line, side, quote, text }));
