// Where the page is, as its address says it: `#/<view>/<run>?name=value`. In the fragment, because
// ids of runs and tasks hold characters that servers treat in ways of their own.

export interface Route {
  /** The id of a view; empty where the address names none. */
  readonly view: string;
  /** The run that the address names, or null for the one that goes on. */
  readonly run: string | null;
  readonly args: Readonly<Record<string, string>>;
}

export function parseRoute(fragment: string): Route {
  const [path, query] = splitOnce(fragment.replace(/^#?\/?/, ""), "?");
  const [view = "", run = ""] = path.split("/").map(decoded);
  return { view, run: run || null, args: Object.fromEntries(new URLSearchParams(query)) };
}

export function formatRoute({ view, run, args }: Route): string {
  const path = [view, ...(run === null ? [] : [run])].map(encodeURIComponent).join("/");
  const query = new URLSearchParams(Object.entries(args).filter(([, value]) => value !== "")).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

function splitOnce(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + at.length)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
