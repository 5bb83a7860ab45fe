// One run as the page knows it: how it stands, the last of its events, and what came after. Earlier
// events are put before these when somebody wants to see them.

import type { Recorded, RunState, WindowView } from "../api/types.ts";
import type { Translate } from "../i18n/say.ts";
import { type Cursor, arrival, parseCursor } from "./cursor.ts";
import { type Item, present } from "./items.ts";
import type { Arrived } from "./link.ts";
import { NEW_RUN, type RunView, type TaskView, fold } from "./run.ts";

export interface Feed {
  readonly cursor: Cursor;
  readonly run: RunView;
  readonly items: readonly Item[];
  /** Where what is not here ends: the number before which to ask; null when all is here. */
  readonly before: number | null;
  /** The number of the first event it was opened with. */
  readonly opened: number;
}

export function loaded(view: WindowView, t: Translate): Feed {
  const { epoch, seq } = parseCursor(view.head) ?? { epoch: "", seq: 0 };
  const run = standing(view);
  return {
    cursor: { epoch, seq },
    run,
    items: itemsOf(eventsOf(view), run, t),
    before: beforeOf(view),
    opened: eventsOf(view)[0]?.seq ?? 0,
  };
}

/** The feed with the events before its first; whatever does not fit there is left out. */
export function extended(feed: Feed, view: WindowView, t: Translate): Feed {
  const { before } = feed;
  if (before === null) return feed;
  const earlier = eventsOf(view).filter(({ seq }) => seq < before);
  return { ...feed, items: [...itemsOf(earlier, feed.run, t), ...feed.items], before: beforeOf(view) };
}

/** The feed after these events; what was seen already, or comes from another log, changes nothing. */
export function received(feed: Feed, arrived: readonly Arrived[], t: Translate): Feed {
  let { cursor, run } = feed;
  const fresh: Recorded[] = [];
  for (const { id, event } of arrived) {
    const place = parseCursor(id);
    if (place && arrival(cursor, place) === "new") {
      cursor = place;
      run = fold(run, event);
      fresh.push(event);
    }
  }
  if (fresh.length === 0) return feed;
  const items = itemsOf(fresh, run, t);
  return { ...feed, cursor, run, items: items.length ? [...feed.items, ...items] : feed.items };
}

/** The server knows the whole run; turns and questions that are open are among its last events. */
function standing(view: WindowView): RunView {
  const { state, summary, team } = view;
  const names = state.names ?? {};
  const last = eventsOf(view).reduce(fold, { ...NEW_RUN, team, names });
  return {
    ...last,
    status: state.status ?? last.status,
    flow: state.flow ?? "",
    request: state.request ?? "",
    team,
    names,
    tasks: tasksOf(state),
    parkedFor: state.status === "parked" ? (state.waits_for ?? "") : "",
    reason: state.reason ?? "",
    landed: state.landed ?? [],
    startedMs: summary.startedMs,
    endedMs: summary.endedMs ?? null,
    tokens: summary.tokens ?? 0,
    cost: summary.cost ?? 0,
    usageIsEstimate: summary.isEstimate ?? false,
  };
}

function tasksOf({ tasks = {} }: RunState): readonly TaskView[] {
  return Object.values(tasks).map((task) => ({
    taskId: task.task_id,
    worker: task.worker,
    instruction: task.instruction,
    status: task.status ?? "dispatched",
    attempts: task.attempts ?? 1,
    reason: task.reason ?? "",
  }));
}

const eventsOf = ({ events }: WindowView): readonly Recorded[] => events as readonly Recorded[];

function beforeOf(view: WindowView): number | null {
  return view.earlier ? (eventsOf(view)[0]?.seq ?? null) : null;
}

function itemsOf(events: readonly Recorded[], { names }: RunView, t: Translate): readonly Item[] {
  const telling = { names, t };
  return events.map((event) => present(event, telling)).filter((item) => item !== null);
}
