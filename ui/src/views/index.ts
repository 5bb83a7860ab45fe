// The views of the page, in the order of the navigation.
//
// To add one: make `views/<name>/<Name>View.tsx` with a component as its default export, give it a
// line here, and its name to the catalogues (`view.<name>` in i18n/en.ts, ko.ts, zh.ts). The shell
// does the rest: address (`#/<id>/<run>?…`), navigation, command bar ("Go to …") and its key.
// A view finds the run that is shown with useCurrentRun(), its events with useFeed(runId), lists
// with the hooks of api/queries.ts, offers its keys with useActions(), and is built from parts/.

import type { ComponentType, LazyExoticComponent } from "react";
import type { LucideIcon } from "lucide-react";
import { FileText, GitPullRequest, Inbox, List, Play, ScrollText } from "lucide-react";
import type { PlainKey } from "../i18n/index.ts";
import { lazily } from "./lazily.ts";

export interface View {
  /** Its place in the address. */
  readonly id: string;
  readonly title: PlainKey;
  readonly icon: LucideIcon;
  /** The key after `g` that leads to it. */
  readonly key: string;
  /** It shows one run, so that its links name the run. */
  readonly ofRun: boolean;
  /** It says itself whom the run waits for; the shell does it for the others. */
  readonly hasWaitingLine?: boolean;
  /** Fold the navigation to a rail, where a view needs the width. */
  readonly wide?: boolean;
  /** What the number beside its name counts. */
  readonly counts?: "runs" | "reviews" | "asks";
  readonly Component: LazyExoticComponent<ComponentType>;
}

export const VIEWS: readonly View[] = [
  {
    id: "runs",
    title: "view.runs",
    icon: List,
    key: "l",
    ofRun: false,
    counts: "runs",
    Component: lazily(() => import("./runs/RunsView.tsx")),
  },
  {
    id: "run",
    title: "view.run",
    icon: Play,
    key: "t",
    ofRun: true,
    hasWaitingLine: true,
    Component: lazily(() => import("./run/RunView.tsx")),
  },
  {
    id: "review",
    title: "view.review",
    icon: GitPullRequest,
    key: "r",
    ofRun: true,
    hasWaitingLine: true,
    wide: true,
    counts: "reviews",
    Component: lazily(() => import("./review/ReviewView.tsx")),
  },
  {
    id: "inbox",
    title: "view.inbox",
    icon: Inbox,
    key: "i",
    ofRun: false,
    counts: "asks",
    Component: lazily(() => import("./inbox/InboxView.tsx")),
  },
  {
    id: "transcript",
    title: "view.transcript",
    icon: ScrollText,
    key: "s",
    ofRun: true,
    Component: lazily(() => import("./transcript/TranscriptView.tsx")),
  },
  {
    id: "report",
    title: "view.report",
    icon: FileText,
    key: "o",
    ofRun: true,
    Component: lazily(() => import("./report/ReportView.tsx")),
  },
];

export const viewOf = (id: string): View | undefined => VIEWS.find((view) => view.id === id);
