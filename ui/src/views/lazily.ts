// A view is fetched when it is first looked at. By then its server may be gone, or be a newer one.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { t } from "../i18n/index.ts";

/** What a view is drawn with cannot be had. React remembers that, so that only a reload mends it. */
export class NotFetched extends Error {}

export const lazily = <P>(fetched: () => Promise<{ default: ComponentType<P> }>): LazyExoticComponent<ComponentType<P>> =>
  lazy(() =>
    fetched().catch((cause: unknown) => {
      throw new NotFetched(t("view.notFetched"), { cause });
    }),
  );
