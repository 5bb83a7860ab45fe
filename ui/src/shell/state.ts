import { create } from "zustand";

type Over = "commands" | "help" | "stop";

interface Shell {
  /** What lies over the page now. */
  readonly shown: Over | null;
  readonly open: (over: Over) => void;
  readonly close: () => void;
}

export const useShell = create<Shell>((set) => ({
  shown: null,
  open: (shown) => {
    set({ shown });
  },
  close: () => {
    set({ shown: null });
  },
}));
