import { Component, type ReactNode } from "react";
import { t } from "../i18n/index.ts";
import { ErrorState } from "../parts/States.tsx";

/** A view that fails says so in its place; the rest of the page stays. */
export class Boundary extends Component<{ readonly children: ReactNode }, { readonly error: Error | null }> {
  override state: { readonly error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <ErrorState
        title={t("view.broken")}
        error={error}
        onRetry={() => {
          this.setState({ error: null });
        }}
      />
    );
  }
}
