// A place in the live feed: `<epoch>-<seq>`. The epoch names one log; numbers of different logs say
// nothing about each other.

export interface Cursor {
  readonly epoch: string;
  readonly seq: number;
}

export function parseCursor(id: string): Cursor | null {
  const parts = /^(.+)-(\d+)$/.exec(id);
  if (parts?.[1] === undefined || parts[2] === undefined) return null;
  return { epoch: parts[1], seq: Number(parts[2]) };
}

export type Arrival = "new" | "seen" | "foreign";

/** What an event at `place` is to somebody who has seen everything up to `seen`. */
export function arrival(seen: Cursor, place: Cursor): Arrival {
  if (place.epoch !== seen.epoch) return "foreign";
  return place.seq > seen.seq ? "new" : "seen";
}
