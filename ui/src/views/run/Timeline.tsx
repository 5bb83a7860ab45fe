import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { fetchAll, fetchEarlier } from "../../api/feeds.ts";
import { useT } from "../../i18n/index.ts";
import type { Feed } from "../../model/feed.ts";
import { type Filter, NO_FILTER, type Row, isFiltering, rowAt, rowsOf } from "../../model/rows.ts";
import { Button } from "../../parts/Button.tsx";
import { EmptyState } from "../../parts/States.tsx";
import { complain } from "../../parts/toast.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { replaceArgs, useRoute } from "../../shell/route.ts";
import { TimelineItem } from "./Entry.tsx";
import { TaskHeading } from "./TaskHeading.tsx";
import { Toolbar } from "./Toolbar.tsx";

/** A few pixels, because browsers round positions when the page is zoomed. */
const NEAR_PX = 4;
const LINE_PX = 30;
const CARD_PX = 90;
/** So near to the top the events before are fetched. */
const EARLIER_PX = 600;

interface Props {
  readonly runId: string;
  readonly feed: Feed;
}

/** Follows its end as long as the reader is there, and never moves one who is not. */
export function Timeline({ runId, feed }: Props) {
  const t = useT();
  const [filter, setFilter] = useFilter();
  const deferred = useDeferredValue(filter);
  const rows = useMemo(() => rowsOf(feed.items, deferred, feed.run.tasks), [feed.items, deferred, feed.run.tasks]);
  const scroller = useRef<HTMLDivElement>(null);
  const searching = useRef<HTMLInputElement>(null);
  const [left, setLeft] = useState<number | null>(null);
  const newest = feed.items.at(-1)?.seq ?? 0;
  const unseen = left === null ? 0 : countAfter(feed.items, left);

  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is compiled or memoised around it
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: useCallback((index: number) => sizeOf(rows[index]), [rows]),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    anchorTo: "end",
    followOnAppend: true,
    // Below zero nothing is ever at the end: what grows or comes is not followed.
    scrollEndThreshold: left === null ? NEAR_PX : Number.NEGATIVE_INFINITY,
    overscan: 8,
    paddingEnd: 24,
    initialOffset: Number.MAX_SAFE_INTEGER,
  });

  const toEnd = useCallback(() => {
    virtual.scrollToEnd();
    setLeft(null);
  }, [virtual]);

  const earlier = useCallback(() => {
    if (feed.before !== null) fetchEarlier(runId).catch(complain);
  }, [feed.before, runId]);

  function scrolled(): void {
    const box = scroller.current;
    if (!box) return;
    const atEnd = box.scrollHeight - box.clientHeight - box.scrollTop <= NEAR_PX;
    setLeft((before) => (atEnd ? null : (before ?? newest)));
    if (box.scrollTop < EARLIER_PX) earlier();
  }

  const isNarrow = isFiltering(filter) || filter.byTask;
  useEffect(() => {
    if (isNarrow && feed.before !== null) fetchAll(runId).catch(complain);
  }, [isNarrow, feed.before, runId]);

  useTimelineActions({ toEnd, toStart: () => { virtual.scrollToIndex(0); }, search: () => searching.current?.focus() });

  return (
    <section className="timeline" aria-label={t("timeline")}>
      <Toolbar
        filter={filter}
        change={setFilter}
        run={feed.run}
        searching={searching}
        jump={(time) => {
          const index = rowAt(rows, time);
          if (index === null) return false;
          virtual.scrollToIndex(index, { align: "start" });
          return true;
        }}
      />
      <div
        className="scroll"
        ref={scroller}
        onScroll={scrolled}
        onClickCapture={({ target }) => {
          // Whoever opens a message reads it.
          if (!(target instanceof Element) || !target.closest("summary")) return;
          setLeft((before) => before ?? newest);
          // Takes the place of a scroll to the end that is still settling.
          virtual.scrollToOffset(virtual.scrollOffset ?? 0);
        }}
        tabIndex={0}
        role="feed"
        aria-label={t("timeline.events")}
        aria-busy={feed.before !== null && isNarrow}
      >
        {rows.length === 0 && isFiltering(filter) ? (
          <EmptyState title={t("timeline.nothing")}>
            <Button onClick={() => { setFilter(NO_FILTER); }}>{t("timeline.clear")}</Button>
          </EmptyState>
        ) : (
          <div className="rows" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map(({ index, key, start }) => {
              const row = rows[index];
              return (
                <div key={key} ref={virtual.measureElement} data-index={index} className="row-place" style={{ transform: `translateY(${start}px)` }}>
                  {row && <RowContent row={row} feed={feed} runId={runId} filter={filter} change={setFilter} />}
                </div>
              );
            })}
          </div>
        )}
      </div>
      {left !== null && (
        <Button className="newer" look="primary" keys="f" onClick={toEnd}>
          <ArrowDown size={14} aria-hidden />
          {unseen > 0 ? t("timeline.new", { count: unseen }) : t("timeline.toEnd")}
        </Button>
      )}
    </section>
  );
}

interface RowProps {
  readonly row: Row;
  readonly feed: Feed;
  readonly runId: string;
  readonly filter: Filter;
  readonly change: (filter: Filter) => void;
}

function RowContent({ row, feed, runId, filter, change }: RowProps) {
  if (row.kind === "task") {
    return (
      <TaskHeading
        row={row}
        onFold={() => {
          const folded = new Set(filter.folded);
          if (!folded.delete(row.taskId)) folded.add(row.taskId);
          change({ ...filter, folded });
        }}
      />
    );
  }
  const { item } = row;
  const open = item.kind === "card" && item.ask !== undefined && feed.run.asks.some(({ askId }) => askId === item.ask);
  const task = item.task === undefined ? undefined : feed.run.tasks.find(({ taskId }) => taskId === item.task);
  return <TimelineItem item={item} runId={runId} open={open} undoable={task?.status === "applied"} />;
}

function sizeOf(row: Row | undefined): number {
  return row?.kind === "item" && row.item.kind === "card" ? CARD_PX : LINE_PX;
}

function countAfter(items: Feed["items"], seq: number): number {
  let count = 0;
  while (count < items.length && (items[items.length - 1 - count]?.seq ?? 0) > seq) count++;
  return count;
}

/** What is typed quickly stays here; kind and task order are in the address, so that they can be linked. */
function useFilter(): [Filter, (filter: Filter) => void] {
  const { args } = useRoute();
  const [filter, setFilter] = useState<Filter>(() => ({
    ...NO_FILTER,
    kind: (args.kind as Filter["kind"] | undefined) ?? "all",
    agent: args.agent ?? "",
    search: args.q ?? "",
    byTask: args.by === "task",
  }));
  const change = useCallback((next: Filter) => {
    setFilter(next);
    replaceArgs({
      kind: next.kind === "all" ? "" : next.kind,
      agent: next.agent,
      q: next.search,
      by: next.byTask ? "task" : "",
    });
  }, []);
  return [filter, change];
}

interface Moves {
  readonly toEnd: () => void;
  readonly toStart: () => void;
  readonly search: () => void;
}

function useTimelineActions(moves: Moves): void {
  const t = useT();
  const latest = useRef(moves);
  useEffect(() => {
    latest.current = moves;
  });
  const actions = useMemo((): Action[] => {
    const group = t("timeline");
    return [
      { id: "timeline.end", title: t("timeline.follow"), group, keys: "f", run: () => { latest.current.toEnd(); } },
      { id: "timeline.start", title: t("timeline.toStart"), group, keys: "g g", run: () => { latest.current.toStart(); } },
      { id: "timeline.search", title: t("timeline.search"), group, keys: "/", run: () => { latest.current.search(); } },
    ];
  }, [t]);
  useActions(actions);
}
