// What a view shows instead of its content: nothing there, not there yet, or cannot be had.

import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { CircleAlert } from "lucide-react";
import { useT } from "../i18n/index.ts";
import { Button } from "./Button.tsx";

interface EmptyProps {
  readonly icon?: LucideIcon;
  readonly title: string;
  /** One sentence, and at most one action as children. */
  readonly text?: ReactNode;
  readonly children?: ReactNode;
}

export function EmptyState({ icon: Icon, title, text, children }: EmptyProps) {
  return (
    <div className="empty">
      {Icon && <Icon size={28} strokeWidth={1.2} aria-hidden />}
      <h2>{title}</h2>
      {text !== undefined && <p>{text}</p>}
      {children}
    </div>
  );
}

/** In the size of what will come, so that nothing moves when it does. */
export function Skeleton({ rows = 4, height = 56 }: { rows?: number; height?: number }) {
  const t = useT();
  return (
    <div className="loading" role="status">
      <span className="unseen">{t("loading")}</span>
      {Array.from({ length: rows }, (_, row) => (
        <i key={row} style={{ height }} />
      ))}
    </div>
  );
}

interface ErrorProps {
  readonly title: string;
  readonly error: Error;
  readonly onRetry?: () => void;
}

export function ErrorState({ title, error, onRetry }: ErrorProps) {
  const t = useT();
  return (
    <div className="empty" role="alert" data-tone="danger">
      <CircleAlert size={28} strokeWidth={1.2} aria-hidden />
      <h2>{title}</h2>
      <p>{error.message}</p>
      {onRetry && <Button onClick={onRetry}>{t("retry")}</Button>}
    </div>
  );
}
