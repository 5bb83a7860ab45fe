// The page's end of the line: through the SharedWorker of all tabs, or, where a browser has none, a
// line of its own that rests while nobody looks.

import type { Told } from "../model/link.ts";
import { Line } from "./line.ts";

interface Live {
  retry(): void;
}

export function connect(tell: (told: Told) => void): Live {
  const worker = shared();
  if (worker === null) return alone(tell);
  let isAlone: Live | null = null;
  worker.onerror = () => {
    // A policy or a private window forbids it.
    isAlone ??= alone(tell);
  };
  worker.port.onmessage = ({ data }: MessageEvent<Told>) => {
    tell(data);
  };
  window.addEventListener("pagehide", (event) => {
    if (!event.persisted) worker.port.postMessage("bye");
  });
  window.addEventListener("online", () => {
    worker.port.postMessage("retry");
  });
  return {
    retry() {
      if (isAlone) isAlone.retry();
      else worker.port.postMessage("retry");
    },
  };
}

/** None where the browser has no such thing, or its settings forbid it. */
function shared(): SharedWorker | null {
  if (typeof SharedWorker === "undefined") return null;
  try {
    return new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "agentcanvas" });
  } catch {
    return null;
  }
}

function alone(tell: (told: Told) => void): Live {
  const line = new Line(tell);
  tell({ type: "welcome", link: line.link });
  const looked = () => {
    if (document.visibilityState === "hidden") line.pause();
    else line.open();
  };
  document.addEventListener("visibilitychange", looked);
  looked();
  return line;
}
