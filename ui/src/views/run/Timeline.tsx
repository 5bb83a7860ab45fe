import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { fetchAll, fetchEarlier } from "../../api/feeds.ts";
import { useT } from "../../i18n/index.ts";
import type { Feed } from "../../model/feed.ts";
import { type Filter, NO_FILTER, type Row, isFiltering, rowAt, rowsOf } from "../../model/rows.ts";
import { Button } from "../../parts/Button.tsx";
import { EmptyState } from "../../parts/States.tsx";
import { type FeedMoves, VirtualFeed } from "../../parts/VirtualFeed.tsx";
import { complain } from "../../parts/toast.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { replaceArgs, useRoute } from "../../shell/route.ts";
import { TimelineItem } from "./Entry.tsx";
import { TaskHeading } from "./TaskHeading.tsx";
import { KINDS, Toolbar } from "./Toolbar.tsx";

const LINE_PX = 30;
const CARD_PX = 90;

interface Props {
  readonly runId: string;
  readonly feed: Feed;
}

export function Timeline({ runId, feed }: Props) {
  const t = useT();
  const [filter, setFilter] = useFilter();
  const deferred = useDeferredValue(filter);
  const { tasks, status } = feed.run;
  const rows = useMemo(() => rowsOf(feed.items, deferred, { tasks, status }), [feed.items, deferred, tasks, status]);
  const moves = useRef<FeedMoves>(null);
  const searching = useRef<HTMLInputElement>(null);
  const timing = useRef<HTMLInputElement>(null);

  const earlier = useCallback(() => {
    if (feed.before !== null) fetchEarlier(runId).catch(complain);
  }, [feed.before, runId]);

  const isNarrow = isFiltering(filter) || filter.byTask;
  useEffect(() => {
    if (isNarrow && feed.before !== null) fetchAll(runId).catch(complain);
  }, [isNarrow, feed.before, runId]);

  useActions(
    useMemo((): Action[] => {
      const group = t("timeline");
      return [
        { id: "timeline.end", title: t("timeline.follow"), group, keys: "f", run: () => moves.current?.toEnd() },
        { id: "timeline.start", title: t("timeline.toStart"), group, keys: "g g", run: () => moves.current?.toStart() },
        { id: "timeline.search", title: t("timeline.search"), group, keys: "/", run: () => searching.current?.focus() },
        { id: "timeline.time", title: t("timeline.time"), group, keys: "h", run: () => timing.current?.focus() },
        { id: "timeline.byTask", title: t(filter.byTask ? "timeline.inOrder" : "timeline.groupByTask"), group, keys: "b", run: () => { setFilter({ ...filter, byTask: !filter.byTask }); } },
        ...KINDS.filter((kind) => kind !== filter.kind).map((kind) => ({
          id: `timeline.kind.${kind}`,
          title: t("timeline.show", { kind: t(`timeline.kind.${kind}`) }),
          group,
          run: () => { setFilter(kind === "all" ? { ...NO_FILTER, byTask: filter.byTask, folded: filter.folded } : { ...filter, kind }); },
        })),
      ];
    }, [t, filter, setFilter]),
  );

  return (
    <section className="timeline" aria-label={t("timeline")}>
      <Toolbar
        filter={filter}
        change={setFilter}
        run={feed.run}
        searching={searching}
        timing={timing}
        jump={(time) => {
          const index = rowAt(rows, time);
          if (index !== null) moves.current?.to(index);
          return index !== null;
        }}
      />
      {rows.length === 0 && isFiltering(filter) ? (
        <EmptyState title={t("timeline.nothing")}>
          <Button onClick={() => { setFilter(NO_FILTER); }}>{t("timeline.clear")}</Button>
        </EmptyState>
      ) : (
        <VirtualFeed
          ref={moves}
          rows={rows}
          keyOf={keyOf}
          sizeOf={sizeOf}
          label={t("timeline.events")}
          // Earlier ones that are fetched are no news.
          count={feed.items.length - firstNew(feed)}
          busy={feed.before !== null && isNarrow}
          onNearTop={earlier}
          keys="f"
          draw={(row) => <RowContent row={row} feed={feed} runId={runId} filter={filter} change={setFilter} />}
        />
      )}
    </section>
  );
}

const keyOf = (row: Row): string => row.key;
const sizeOf = (row: Row): number => (row.kind === "item" && row.item.kind === "card" ? CARD_PX : LINE_PX);

/** Where what the run was opened with begins. */
const firstNew = ({ items, opened }: Feed): number => {
  const at = items.findIndex(({ seq }) => seq >= opened);
  return at < 0 ? items.length : at;
};

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

/** What is looked for is in the address, so that it can be linked and survives a reload. */
function useFilter(): [Filter, (filter: Filter) => void] {
  const { args } = useRoute();
  const [{ folded, provenance }, setRest] = useState<Pick<Filter, "folded" | "provenance">>(NO_FILTER);
  const { kind = "all", agent = "", q: search = "", by } = args;
  const filter = useMemo(
    (): Filter => ({
      kind: KINDS.find((known) => known === kind) ?? "all",
      agent,
      search,
      byTask: by === "task",
      folded,
      provenance,
    }),
    [kind, agent, search, by, folded, provenance],
  );
  const change = useCallback((next: Filter) => {
    setRest(next);
    replaceArgs({
      kind: next.kind === "all" ? "" : next.kind,
      agent: next.agent,
      q: next.search,
      by: next.byTask ? "task" : "",
    });
  }, []);
  return [filter, change];
}
