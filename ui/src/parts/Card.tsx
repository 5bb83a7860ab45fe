import type { ReactNode } from "react";

interface Props {
  readonly title: ReactNode;
  /** On the right of the heading. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

/** A panel with a heading; the cards of the timeline are Entry's. */
export function Card({ title, aside, children }: Props) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      <div className="panel-body">{children}</div>
    </section>
  );
}
