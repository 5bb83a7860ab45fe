import { useSyncExternalStore } from "react";
import { type Route, formatRoute, parseRoute } from "../model/route.ts";

let fragment = "\0";
let current: Route = parseRoute("");

/** The same value as long as the address is the same. */
export function route(): Route {
  if (location.hash !== fragment) {
    fragment = location.hash;
    current = parseRoute(fragment);
  }
  return current;
}

function watch(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => {
    window.removeEventListener("hashchange", changed);
  };
}

export function useRoute(): Route {
  return useSyncExternalStore(watch, route);
}

type Target = Partial<Route> & Pick<Route, "view">;

/** The address of a place, for links. The run stays the one that the address names now. */
export function addressOf({ view, run = route().run, args = {} }: Target): string {
  return formatRoute({ view, run, args });
}

export function go(target: Target): void {
  location.hash = addressOf(target);
}

/** Change the address without a step in the history: for choices inside a view. */
export function replaceArgs(args: Readonly<Record<string, string>>): void {
  history.replaceState(history.state, "", formatRoute({ ...route(), args: { ...route().args, ...args } }));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
