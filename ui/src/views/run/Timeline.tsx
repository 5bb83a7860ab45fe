import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import type { Item } from "../../model/items.ts";
import type { Feed } from "../../model/feed.ts";
import { AT_END, type Tail, grown, scrolled } from "../../model/tail.ts";
import { grouped } from "../../model/words.ts";
import { Icon } from "../../parts/Icon.tsx";
import { TimelineItem } from "./Card.tsx";

/** A few pixels, because browsers round positions when the page is zoomed. */
const NEAR_PX = 4;

type Happening = { readonly grownBy: number } | { readonly atEnd: boolean };

function tailAfter(tail: Tail, happening: Happening): Tail {
  return "atEnd" in happening ? scrolled(tail, happening.atEnd) : grown(tail, happening.grownBy);
}

function isOpen({ run }: Feed, item: Item): boolean {
  return item.kind === "card" && item.ask !== undefined && run.asks.some((ask) => ask.askId === item.ask);
}

/** Drawn at first, and added by each wish for earlier ones: enough to read, quick to draw. */
const PAGE_LENGTH = 300;

export function Timeline({ feed }: { feed: Feed }) {
  const [from, setFrom] = useState(() => Math.max(0, feed.items.length - PAGE_LENGTH));
  const scroller = useRef<HTMLDivElement>(null);
  const [tail, happened] = useReducer(tailAfter, AT_END);
  const known = useRef(feed.items.length);
  // Where the end was when it was last followed: whoever is above it has scrolled since, even
  // if the browser has not told yet.
  const end = useRef(0);
  const drawn = useRef({ from, height: 0 });

  function measure(): void {
    const box = scroller.current;
    if (box) happened({ atEnd: box.scrollHeight - box.clientHeight - box.scrollTop <= NEAR_PX });
  }

  function goToEnd(): void {
    const box = scroller.current;
    if (!box) return;
    box.scrollTop = box.scrollHeight;
    end.current = box.scrollTop;
    happened({ atEnd: true });
  }

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const more = feed.items.length - known.current;
    known.current = feed.items.length;
    // What was cut off at the top has moved the end up.
    const reached = Math.min(end.current, box.scrollHeight - box.clientHeight);
    if (tail.following && box.scrollTop >= reached - NEAR_PX) {
      box.scrollTop = box.scrollHeight;
      end.current = box.scrollTop;
      if (feed.items.length - from > 2 * PAGE_LENGTH) {
        requestAnimationFrame(() => {
          setFrom(feed.items.length - PAGE_LENGTH);
        });
      }
    } else {
      if (from < drawn.current.from) box.scrollTop += box.scrollHeight - drawn.current.height;
      if (more > 0) {
        happened({ atEnd: false });
        happened({ grownBy: more });
      }
    }
    drawn.current = { from, height: box.scrollHeight };
  }, [feed, from, tail.following]);

  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    // Opening a message is reading: the next event must not carry it away.
    box.addEventListener("toggle", measure, true);
    let height = box.clientHeight;
    const watch = new ResizeObserver(() => {
      if (!tail.following || box.clientHeight === height) return;
      height = box.clientHeight;
      box.scrollTop = box.scrollHeight;
      end.current = box.scrollTop;
    });
    watch.observe(box);
    return () => {
      box.removeEventListener("toggle", measure, true);
      watch.disconnect();
    };
  }, [tail.following]);

  useEffect(() => {
    function key(event: KeyboardEvent): void {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
      if (event.key === "f" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) goToEnd();
    }
    window.addEventListener("keydown", key);
    return () => {
      window.removeEventListener("keydown", key);
    };
  }, []);

  return (
    <section className="timeline" aria-label="Timeline">
      <div className="scroll" ref={scroller} onScroll={measure} tabIndex={0} aria-label="Events of this run">
        {from > 0 && (
          <button className="button earlier" onClick={() => {
              setFrom(Math.max(0, from - PAGE_LENGTH));
            }}
          >
            {grouped(from)} earlier
          </button>
        )}
        <ol>
          {feed.items.slice(from).map((item) => (
            <TimelineItem key={item.seq} item={item} open={isOpen(feed, item)} />
          ))}
        </ol>
      </div>
      {!tail.following && (
        <button className="button newer" data-look="primary" onClick={goToEnd}>
          <Icon name="down" />
          {tail.unseen > 0 ? `${grouped(tail.unseen)} new` : "To the end"} <kbd>F</kbd>
        </button>
      )}
    </section>
  );
}
