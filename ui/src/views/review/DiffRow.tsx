import { memo } from "react";
import { MessageSquarePlus } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { takesHunk } from "../../model/review/choice.ts";
import { languageOf } from "../../model/review/language.ts";
import { LONGEST_DRAWN, painted } from "../../model/review/paint.ts";
import { type FilePatch, type Hunk, MODE_CHANGE, choosable } from "../../model/review/patch.ts";
import { type Line, type Place, type Row, marksOf } from "../../model/review/rows.ts";
import { Content } from "./Content.tsx";
import { FileHead } from "./FileHead.tsx";
import { Thread } from "./Thread.tsx";
import { Odd, Visible } from "../../parts/Visible.tsx";
import { useTokens } from "./colour/colours.ts";
import type { Reviewed } from "./reviewed.ts";

export function DiffRow({ row, reviewed }: { row: Row; reviewed: Reviewed }) {
  const file = reviewed.files[row.file];
  if (!file) return null;
  switch (row.kind) {
    case "file":
      return <FileHead file={file} index={row.file} reviewed={reviewed} />;
    case "hunk":
      return <HunkHead file={file} hunk={row.hunk} reviewed={reviewed} />;
    case "mode":
      return <ModeHead file={file} reviewed={reviewed} />;
    case "content":
      return <Content file={file} why={row.why} reviewed={reviewed} />;
    case "thread":
      return <Thread place={row.place} reviewed={reviewed} />;
    case "line":
    case "pair": {
      const hunk = file.hunks.find(({ number }) => number === row.hunk);
      if (!hunk) return null;
      const isOut = !reviewed.isSince && !takesHunk(reviewed.desk.leftOut, file, hunk.number);
      return row.kind === "line" ? (
        <CodeLine line={row.line} hunk={hunk} path={file.path} out={isOut} onSay={reviewed.canSay ? reviewed.say : null} isSince={reviewed.isSince} />
      ) : (
        <Pair left={row.left} right={row.right} hunk={hunk} path={file.path} out={isOut} onSay={reviewed.canSay ? reviewed.say : null} isSince={reviewed.isSince} />
      );
    }
  }
}

function HunkHead({ file, hunk, reviewed }: { file: FilePatch; hunk: Hunk; reviewed: Reviewed }) {
  const t = useT();
  const canChoose = reviewed.canChoose && choosable(file).length > 1;
  return (
    <div className="hunk-head">
      {canChoose && (
        <label className="hunk-take">
          <input
            type="checkbox"
            checked={takesHunk(reviewed.desk.leftOut, file, hunk.number)}
            onChange={(event) => {
              reviewed.takeHunk(file, hunk.number, event.target.checked);
            }}
          />
          <span>{t("review.take")}</span>
        </label>
      )}
      <code className="ellipsis">
        @@ −{hunk.oldStart},{hunk.oldCount} +{hunk.newStart},{hunk.newCount} @@ <Visible text={hunk.heading} />
      </code>
    </div>
  );
}

function ModeHead({ file, reviewed }: { file: FilePatch; reviewed: Reviewed }) {
  const t = useT();
  const canChoose = reviewed.canChoose && choosable(file).length > 1;
  return (
    <div className="hunk-head">
      {canChoose && (
        <label className="hunk-take">
          <input
            type="checkbox"
            checked={takesHunk(reviewed.desk.leftOut, file, MODE_CHANGE)}
            onChange={(event) => {
              reviewed.takeHunk(file, MODE_CHANGE, event.target.checked);
            }}
          />
          <span>{t("review.take")}</span>
        </label>
      )}
      <span>{t("review.mode", { old: file.oldMode, fresh: file.newMode })}</span>
    </div>
  );
}

interface LineProps {
  readonly line: Line;
  readonly hunk: Hunk;
  readonly path: string;
  readonly out: boolean;
  readonly onSay: ((place: Place, quote: string) => void) | null;
  readonly isSince: boolean;
}

const SIGNS = { "+": "+", "-": "−", " ": "" } as const;

const CodeLine = memo(function CodeLine({ line, hunk, path, out, onSay, isSince }: LineProps) {
  return (
    <div className="diff-line" data-sign={line.sign} data-out={out || undefined}>
      <span className="n">{line.old || ""}</span>
      <span className="n">
        {line.fresh || ""}
        {onSay && <Say line={line} path={path} onSay={onSay} isSince={isSince} />}
      </span>
      <span className="sign">{SIGNS[line.sign]}</span>
      <Code line={line} hunk={hunk} path={path} />
    </div>
  );
});

interface PairProps extends Omit<LineProps, "line"> {
  readonly left: Line | undefined;
  readonly right: Line | undefined;
}

const Pair = memo(function Pair({ left, right, hunk, path, out, onSay, isSince }: PairProps) {
  return (
    <div className="pair" data-out={out || undefined}>
      <Half line={left} number={left?.old} hunk={hunk} path={path} onSay={left?.sign === "-" ? onSay : null} isSince={isSince} />
      <Half line={right} number={right?.fresh} hunk={hunk} path={path} onSay={right ? onSay : null} isSince={isSince} />
    </div>
  );
});

interface HalfProps extends Omit<LineProps, "line" | "out"> {
  readonly line: Line | undefined;
  readonly number: number | undefined;
}

function Half({ line, number, hunk, path, onSay, isSince }: HalfProps) {
  if (!line) return <div className="half" data-sign="none" />;
  return (
    <div className="half" data-sign={line.sign}>
      <span className="n">
        {number}
        {onSay && <Say line={line} path={path} onSay={onSay} isSince={isSince} />}
      </span>
      <span className="sign">{SIGNS[line.sign]}</span>
      <Code line={line} hunk={hunk} path={path} />
    </div>
  );
}

/** Where a comment on a line goes: what is gone has only its old number. */
export function placeOf(path: string, line: Line, isSince: boolean): Place | null {
  if (line.sign !== "-") return { path, side: "new", line: line.fresh };
  // What an earlier attempt had is in no file that anybody could look at.
  return isSince ? null : { path, side: "old", line: line.old };
}

function Say({ line, path, onSay, isSince }: { line: Line; path: string; onSay: (place: Place, quote: string) => void; isSince: boolean }) {
  const t = useT();
  const place = placeOf(path, line, isSince);
  if (!place) return null;
  return (
    <button
      type="button"
      className="say"
      tabIndex={-1}
      aria-label={t("review.commentOn", { line: place.line })}
      onClick={() => {
        onSay(place, line.text);
      }}
    >
      <MessageSquarePlus size={14} aria-hidden />
    </button>
  );
}

function Code({ line, hunk, path }: { line: Line; hunk: Hunk; path: string }) {
  const t = useT();
  const tokens = useTokens(hunk, languageOf(path), line.index);
  const isLong = line.text.length > LONGEST_DRAWN;
  // Git's files end their lines with LF; a CR before it shows only where something changed.
  const text = (line.sign === " " ? line.text.replace(/\r$/, "") : line.text).slice(0, LONGEST_DRAWN);
  const marks = line.sign === " " ? [] : marksOf(hunk, line);
  return (
    <code className="code" dir="ltr">
      {painted(text, tokens, marks).map((brush, index) => {
        const inner = brush.odd === undefined ? brush.text : <Odd name={brush.odd} />;
        if (brush.differs) {
          return (
            <mark key={index} data-colour={brush.colour}>
              {inner}
            </mark>
          );
        }
        return brush.colour ? (
          <span key={index} data-colour={brush.colour}>
            {inner}
          </span>
        ) : (
          <span key={index}>{inner}</span>
        );
      })}
      {isLong && <span className="cut">{t("review.longLine", { count: line.text.length - LONGEST_DRAWN })}</span>}
      {line.open && <span className="cut">{t("review.noEnd")}</span>}
    </code>
  );
}

