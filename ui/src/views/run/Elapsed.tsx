import { useEffect, useState } from "react";
import { duration } from "../../model/words.ts";

/** For how long something has gone on, counted on as long as it does. */
export function useElapsed(from: number, to: number | null): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (to !== null) return;
    const timer = setInterval(() => {
      setNow(Date.now());
    }, 1000);
    return () => {
      clearInterval(timer);
    };
  }, [to]);
  return Math.max(0, (to ?? Math.max(now, from)) - from);
}

export function Elapsed({ from, to }: { from: number; to: number | null }) {
  return <span className="num">{duration(useElapsed(from, to))}</span>;
}
