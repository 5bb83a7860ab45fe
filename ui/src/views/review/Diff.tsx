import { type Range, type Virtualizer, defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useCallback, useEffect, useImperativeHandle, useMemo, useRef, type Ref } from "react";
import { useT } from "../../i18n/index.ts";
import { plain, plainName } from "../../model/odd.ts";
import type { Row } from "../../model/review/rows.ts";
import { DiffRow } from "./DiffRow.tsx";
import type { Reviewed } from "./reviewed.ts";

/** What can be done with the diff from outside of it. */
export interface DiffHandle {
  /** Show a row at the top, and make it the current one. */
  readonly reveal: (row: number, focus?: boolean) => void;
}

interface Props {
  readonly reviewed: Reviewed;
  readonly ref: Ref<DiffHandle>;
}

const LINE_PX = 20;
const HEIGHTS: Readonly<Record<Row["kind"], number>> = { file: 37, hunk: 29, mode: 29, content: 90, line: LINE_PX, pair: LINE_PX, thread: 96 };
/** A heading stays in sight above what is below it. */
const STICKY_PX = HEIGHTS.file;
const OVERSCAN = 24;

export function Diff({ reviewed, ref }: Props) {
  const t = useT();
  const { rows, cursor, setCursor, files } = reviewed;
  const scroller = useRef<HTMLDivElement>(null);
  const heads = useMemo(() => rows.flatMap((row, index) => (row.kind === "file" ? [index] : [])), [rows]);
  const stuck = useRef(0);
  const self = useRef<Virtualizer<HTMLDivElement, Element> | null>(null);

  // eslint-disable-next-line react-hooks/incompatible-library -- its functions are not handed on
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => HEIGHTS[rows[index]?.kind ?? "line"],
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: OVERSCAN,
    scrollPaddingStart: STICKY_PX,
    rangeExtractor: useCallback(
      (range: Range) => {
        // The heading of what shows below it: the next file's takes over once it comes that far.
        const box = scroller.current;
        const below = box ? self.current?.getVirtualItemForOffset(box.scrollTop + STICKY_PX)?.index : undefined;
        stuck.current = headAbove(heads, below ?? range.startIndex);
        const shown = defaultRangeExtractor(range);
        return shown.includes(stuck.current) ? shown : [stuck.current, ...shown];
      },
      [heads],
    ),
  });

  useEffect(() => {
    self.current = virtual;
  }, [virtual]);

  const reveal = useCallback(
    (index: number, focus = true) => {
      setCursor(rows[index]?.key ?? null);
      const kind = rows[index]?.kind;
      if (kind === "file") {
        // A heading is what stays in sight; it needs no room above it for another one.
        virtual.scrollToOffset((virtual.getOffsetForIndex(index, "start")?.[0] ?? 0) + STICKY_PX);
      } else virtual.scrollToIndex(index, { align: kind === "line" || kind === "pair" ? "center" : "start" });
      if (focus) scroller.current?.focus({ preventScroll: true });
    },
    [rows, setCursor, virtual],
  );
  useImperativeHandle(ref, () => ({ reveal }), [reveal]);

  // A thread that opens takes the focus itself; only what scrolled away is brought back.
  useEffect(() => {
    virtual.measure();
  }, [virtual, reviewed.split]);

  function pressed(event: KeyboardEvent): void {
    if (event.target !== scroller.current || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = cursor >= 0 ? cursor : (virtual.range?.startIndex ?? 0) - step;
    for (let index = from + step; index >= 0 && index < rows.length; index += step) {
      if (rows[index]?.kind === "thread") continue;
      setCursor(rows[index]?.key ?? null);
      virtual.scrollToIndex(index, { align: "auto" });
      return;
    }
  }

  const items = virtual.getVirtualItems();
  return (
    <div className="diff" data-panel="diff" data-split={reviewed.split || undefined}>
      <div
        ref={scroller}
        className="diff-scroll"
        role="region"
        aria-label={t("review.changes")}
        aria-describedby="diff-keys"
        tabIndex={0}
        onKeyDown={pressed}
      >
        <div className="diff-rows" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows[index];
            const isStuck = index === stuck.current && start < (virtual.scrollOffset ?? 0);
            return row ? (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="diff-row"
                data-kind={row.kind}
                data-stuck={isStuck || undefined}
                data-cursor={index === cursor || undefined}
                onClick={() => {
                  // A tap on a line is how a finger comes to it.
                  if (row.kind === "line" || row.kind === "pair") setCursor(row.key);
                }}
                style={isStuck ? undefined : { transform: `translateY(${start}px)` }}
              >
                <DiffRow row={row} reviewed={reviewed} />
              </div>
            ) : null;
          })}
        </div>
      </div>
      <p id="diff-keys" className="unseen">
        {t("review.diffKeys")}
      </p>
      <p className="unseen" role="status">
        {spoken(rows[cursor], files.map(({ path }) => path), t)}
      </p>
    </div>
  );
}

/** The heading of the file that a row belongs to. */
function headAbove(heads: readonly number[], index: number): number {
  let [low, high] = [0, heads.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((heads[middle] ?? 0) <= index) low = middle;
    else high = middle - 1;
  }
  return heads[low] ?? 0;
}

/** The current row in words, for who hears the page. */
function spoken(row: Row | undefined, paths: readonly string[], t: ReturnType<typeof useT>): string {
  if (!row) return "";
  const side = row.kind === "line" ? row.line : row.kind === "pair" ? (row.right ?? row.left) : undefined;
  if (side) {
    const what = { "+": "review.lineAdded", "-": "review.lineRemoved", " ": "review.lineKept" } as const;
    return t(what[side.sign], { line: side.fresh || side.old, text: plain(side.text.slice(0, 300)) });
  }
  return plainName(paths[row.file] ?? "");
}
