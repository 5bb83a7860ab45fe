import { create } from "zustand";

type Over = "commands" | "help" | "stop" | "asks";

/** Something that is done only after a second look. */
export type Question =
  | { readonly type: "undo"; readonly runId: string; readonly taskId: string | null }
  | { readonly type: "stopWork"; readonly runId: string; readonly agent?: string; readonly taskId?: string; readonly name: string };

interface Shell {
  /** What lies over the page now. */
  readonly shown: Over | null;
  readonly question: Question | null;
  readonly open: (over: Over) => void;
  readonly close: () => void;
  readonly ask: (question: Question) => void;
}

export const useShell = create<Shell>((set) => ({
  shown: null,
  question: null,
  open: (shown) => {
    set({ shown });
  },
  close: () => {
    set({ shown: null, question: null });
  },
  ask: (question) => {
    set({ question });
  },
}));
