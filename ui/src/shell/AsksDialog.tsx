import { Suspense, lazy, useEffect } from "react";
import { useAsks } from "../api/queries.ts";
import { useT } from "../i18n/index.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { Skeleton } from "../parts/States.tsx";
import { useRoute } from "./route.ts";
import { useShell } from "./state.ts";

const AskList = lazy(async () => ({ default: (await import("../views/inbox/InboxView.tsx")).AskList }));

/** What waits for a person, answered without leaving the view (D24). */
export function AsksDialog() {
  const t = useT();
  const shown = useShell((shell) => shell.shown) === "asks";
  const asks = useAsks().data?.asks ?? [];
  const route = useRoute();
  const { open, close } = useShell.getState();

  // A link in an ask leads elsewhere.
  useEffect(() => close, [route, close]);

  return (
    <Dialog
      open={shown}
      onOpenChange={(isOpen) => {
        if (isOpen) open("asks");
        else close();
      }}
      title={asks.length > 0 ? t("nav.needsYou", { count: asks.length }) : t("inbox.none")}
      wide
    >
      <Suspense fallback={<Skeleton rows={2} />}>
        <AskList asks={asks} />
      </Suspense>
    </Dialog>
  );
}
