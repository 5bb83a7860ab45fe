import { useEffect, useState } from "react";
import { duration } from "../../model/words.ts";

/** How long something takes, counted on as long as it does. */
export function Elapsed({ from, to }: { from: number; to: number | null }) {
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
  return <span className="num">{duration(Math.max(0, (to ?? Math.max(now, from)) - from))}</span>;
}
