// Everything that can be done from where the reader is. A view offers its actions with useActions;
// the command bar lists them, their keys work, and `?` shows the keys. While a dialog is open or
// something is typed, single keys do nothing.

import { useEffect } from "react";
import { create } from "zustand";
import type { Translate } from "../i18n/index.ts";

export interface Action {
  /** Unique among all that are offered at one time. */
  readonly id: string;
  readonly title: string;
  /** A heading to list it under. */
  readonly group: string;
  /** One key as `KeyboardEvent.key` names it, or two after each other: `"j"`, `"?"`, `"g r"`. What no
      event is called, such as `"↓ ↑"`, is listed and heard by somebody else. */
  readonly keys?: string | undefined;
  /** Why it cannot be done now; it is listed with the reason, and its key does nothing. */
  readonly disabled?: string | undefined;
  /** Not in the command bar: a key only. */
  readonly hidden?: boolean;
  readonly run: () => void;
}

/** The key that is held with K. */
export const modifier = (): string => (/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl");

interface Actions {
  readonly offered: readonly (readonly Action[])[];
}

export const useOffered = create<Actions>(() => ({ offered: [] }));

/** All actions that can be had now. */
export const actionsOf = ({ offered }: Actions): readonly Action[] => offered.flat();

/** Under their headings: the way to the views, what the shown one offers, and what is to be had everywhere. */
export function inOrder(actions: readonly Action[], t: Translate): readonly (readonly [string, readonly Action[]])[] {
  const last = (["group.run", "view.transcript", "view.runs", "group.page"] as const).map((key) => t(key));
  const rank = (group: string) => (group === t("group.views") ? -2 : last.indexOf(group));
  return [...Map.groupBy(actions, ({ group }) => group)].sort(([one], [other]) => rank(one) - rank(other));
}

/** Offer these for as long as the component is there; hand in a memoised list. */
export function useActions(actions: readonly Action[]): void {
  useEffect(() => {
    useOffered.setState(({ offered }) => ({ offered: [...offered, actions] }));
    return () => {
      useOffered.setState(({ offered }) => ({ offered: offered.filter((other) => other !== actions) }));
    };
  }, [actions]);
}

const CHORD_MS = 1200;

/** Listen for the keys of all actions; called once, by the shell. */
export function useKeys(): void {
  useEffect(() => {
    let before = "";
    let until = 0;

    function pressed(event: KeyboardEvent): void {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (isTaken(event.target)) return;
      const chord = before && event.timeStamp < until ? `${before} ${event.key}` : "";
      const actions = actionsOf(useOffered.getState());
      const action =
        actions.find((one) => one.keys === chord) ?? actions.find((one) => one.keys === event.key);
      before = event.key;
      until = event.timeStamp + CHORD_MS;
      if (!action || action.disabled !== undefined) return;
      before = "";
      event.preventDefault();
      action.run();
    }

    window.addEventListener("keydown", pressed);
    return () => {
      window.removeEventListener("keydown", pressed);
    };
  }, []);
}

/** Whether what has the focus wants the keys for itself. */
function isTaken(target: EventTarget | null): boolean {
  if (document.querySelector("[role=dialog][data-state=open], [role=alertdialog][data-state=open]")) return true;
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), select, textarea");
}
