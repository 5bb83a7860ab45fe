import { Component, type ReactNode } from "react";
import { ApiError, address, get } from "../api/client.ts";
import { t } from "../i18n/index.ts";
import { ErrorState } from "../parts/States.tsx";
import { complain } from "../parts/toast.tsx";
import { NotFetched } from "../views/lazily.ts";

/** Only once somebody answers: the browser's own page would not come back by itself. */
async function reload(): Promise<void> {
  try {
    await get(address(["server"]));
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) {
      complain(error);
      return;
    }
  }
  location.reload();
}

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
          if (error instanceof NotFetched) void reload();
          else this.setState({ error: null });
        }}
      />
    );
  }
}
