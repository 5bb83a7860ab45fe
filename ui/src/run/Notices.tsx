import type { Link } from "../model/page.ts";
import { Icon } from "../parts/Icon.tsx";
import { grouped } from "../model/words.ts";

export function NoRunYet() {
  return (
    <div className="empty">
      <Icon name="empty" />
      <h2>No run yet</h2>
      <p>Start one in your repository; it appears here by itself.</p>
      <code>agentcanvas run &quot;fix the failing test&quot;</code>
    </div>
  );
}

export function Loading() {
  return (
    <div className="loading" role="status">
      <span className="unseen">Loading</span>
      <i />
      <i />
      <i />
    </div>
  );
}

interface LostProps {
  readonly link: Extract<Link, { state: "lost" }>;
  readonly upTo: number | null;
  readonly onRetry: () => void;
}

/** Floats, so that losing the server moves nothing of what is being read. */
export function Lost({ link, upTo, onRetry }: LostProps) {
  return (
    <div className="toast" role="alert">
      <Icon name="plug" />
      <div>
        <strong>Connection lost: {link.reason}</strong>
        <p>
          {upTo !== null && `Shown up to event ${grouped(upTo)}. `}
          Trying again in {Math.round(link.retryMs / 1000)} s.
        </p>
      </div>
      <button className="button" onClick={onRetry}>
        Retry
      </button>
    </div>
  );
}
