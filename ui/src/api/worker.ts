// The line of all tabs of a browser. A tab that goes without a word costs a message to nobody.

import type { Told, Wish } from "../model/link.ts";
import { Line } from "./line.ts";

interface Scope {
  onconnect: (event: MessageEvent) => void;
}

const tabs = new Set<MessagePort>();
const line = new Line((told) => {
  for (const tab of tabs) tab.postMessage(told);
});
line.open();

(globalThis as unknown as Scope).onconnect = ({ ports: [tab] }) => {
  if (!tab) return;
  tab.onmessage = ({ data }: MessageEvent<Wish>) => {
    if (data === "bye") tabs.delete(tab);
    else line.retry();
  };
  tabs.add(tab);
  tab.postMessage({ type: "welcome", link: line.link } satisfies Told);
};
