// A list of any length that grows at its end: only what is on the screen is drawn, the end is
// followed as long as the reader is there, and one who is not is never moved.

import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { type ReactNode, type Ref, useCallback, useImperativeHandle, useRef, useState } from "react";
import { useT } from "../i18n/index.ts";
import { Button } from "./Button.tsx";

/** A few pixels, because browsers round positions when the page is zoomed. */
const NEAR_PX = 4;
/** So near to the top the rows before are wanted. */
const EARLIER_PX = 600;

export interface FeedMoves {
  readonly toEnd: () => void;
  readonly toStart: () => void;
  readonly to: (index: number) => void;
}

interface Props<Row> {
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** What a row is likely to need before it was measured. */
  readonly sizeOf: (row: Row) => number;
  readonly draw: (row: Row) => ReactNode;
  readonly label: string;
  /** How many of the things that grow there are now; what was added since the reader left the end is new. */
  readonly count: number;
  readonly onNearTop?: () => void;
  readonly busy?: boolean;
  readonly ref?: Ref<FeedMoves>;
  /** The key that leads to the end, printed on the button. */
  readonly keys?: string;
}

export function VirtualFeed<Row>(props: Props<Row>) {
  const { rows, keyOf, sizeOf, draw, label, count, onNearTop, busy = false, ref, keys } = props;
  const t = useT();
  const scroller = useRef<HTMLDivElement>(null);
  const reached = useRef(false);
  const [left, setLeft] = useState<number | null>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is compiled or memoised around it
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: useCallback((index: number) => { const row = rows[index]; return row === undefined ? 0 : sizeOf(row); }, [rows, sizeOf]),
    getItemKey: useCallback((index: number) => { const row = rows[index]; return row === undefined ? index : keyOf(row); }, [rows, keyOf]),
    anchorTo: "end",
    followOnAppend: true,
    // Below zero nothing is ever at the end: what grows or comes is not followed.
    scrollEndThreshold: left === null ? NEAR_PX : Number.NEGATIVE_INFINITY,
    overscan: 8,
    paddingEnd: 24,
    initialOffset: Number.MAX_SAFE_INTEGER,
  });

  function toEnd(): void {
    virtual.scrollToEnd();
    setLeft(null);
  }

  useImperativeHandle(ref, () => ({
    toEnd,
    toStart: () => { virtual.scrollToIndex(0); },
    to: (index) => { virtual.scrollToIndex(index, { align: "start" }); },
  }));

  function scrolled(): void {
    const box = scroller.current;
    if (!box) return;
    const atEnd = box.scrollHeight - box.clientHeight - box.scrollTop <= NEAR_PX;
    // It begins at its end; what is scrolled before that is not the reader's doing.
    if (!reached.current && !atEnd) return;
    reached.current = true;
    setLeft((before) => (atEnd ? null : (before ?? count)));
    if (box.scrollTop < EARLIER_PX) onNearTop?.();
  }

  const unseen = left === null ? 0 : Math.max(0, count - left);
  return (
    <>
      <div
        className="scroll"
        ref={scroller}
        onScroll={scrolled}
        onClickCapture={({ target }) => {
          // Whoever opens a message reads it.
          if (!(target instanceof Element) || !target.closest("summary")) return;
          setLeft((before) => before ?? count);
          // Takes the place of a scroll to the end that is still settling.
          virtual.scrollToOffset(virtual.scrollOffset ?? 0);
        }}
        tabIndex={0}
        role="group"
        aria-label={label}
        aria-busy={busy}
      >
        <div className="rows" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index];
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="row-place"
                style={{ transform: `translateY(${start}px)` }}
              >
                {row !== undefined && draw(row)}
              </div>
            );
          })}
        </div>
      </div>
      {left !== null && (
        <Button className="newer" look="primary" {...(keys !== undefined && { keys })} onClick={toEnd}>
          <ArrowDown size={14} aria-hidden />
          {unseen > 0 ? t("timeline.new", { count: unseen }) : t("timeline.toEnd")}
        </Button>
      )}
    </>
  );
}
