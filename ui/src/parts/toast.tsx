// Short news of what was done, at the foot of the page. `toast("…")` from anywhere.

import { create } from "zustand";
import type { Tone } from "../model/items.ts";
import { useT } from "../i18n/index.ts";
import { Button } from "./Button.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
  readonly action?: { readonly label: string; readonly run: () => void } | undefined;
}

const LASTS_MS = 8000;
let last = 0;
const useToasts = create<{ readonly shown: readonly Toast[] }>(() => ({ shown: [] }));

export function toast(text: string, { tone = "ok", action }: Partial<Pick<Toast, "tone" | "action">> = {}): void {
  const id = ++last;
  useToasts.setState(({ shown }) => ({ shown: [...shown.slice(-2), { id, text, tone, action }] }));
  // What went wrong stays until it was read.
  if (tone !== "danger") {
    setTimeout(() => {
      drop(id);
    }, LASTS_MS);
  }
}

/** Say what kept something from being done. */
export function complain(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), { tone: "danger" });
}

function drop(id: number): void {
  useToasts.setState(({ shown }) => ({ shown: shown.filter((one) => one.id !== id) }));
}

export function Toasts() {
  const t = useT();
  const shown = useToasts((toasts) => toasts.shown);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, tone, action }) => (
        <div key={id} className="toast" data-tone={tone}>
          <p>{text}</p>
          {action && (
            <Button
              small
              onClick={() => {
                action.run();
                drop(id);
              }}
            >
              {action.label}
            </Button>
          )}
          <Button
            small
            look="ghost"
            onClick={() => {
              drop(id);
            }}
          >
            {t("close")}
          </Button>
        </div>
      ))}
    </div>
  );
}
