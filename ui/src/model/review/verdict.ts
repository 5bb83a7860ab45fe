// What a person may decide about a proposal now, and what they have to say with it. The gate on the
// server has the last word; this says the same before it is asked.

import type { Compared, Decision, Finding, ShownProposal } from "../../api/types.ts";

export type Objection =
  /** Nobody can override these. */
  | { readonly kind: "unsafe"; readonly detail: string }
  | { readonly kind: "conflicts"; readonly detail: string }
  | { readonly kind: "nothing" }
  /** These, a person can, who says why. */
  | { readonly kind: "red"; readonly checks: readonly string[] }
  | { readonly kind: "mustFix"; readonly count: number; readonly first: string };

const FINAL: ReadonlySet<Objection["kind"]> = new Set(["unsafe", "conflicts", "nothing"]);

export interface Draft {
  readonly reason: string;
  readonly comments: number;
  /** Files that would land; some of them perhaps in part. */
  readonly chosen: number;
}

export type Standing =
  | { readonly state: "ready" }
  | { readonly state: "reason" }
  | { readonly state: "blocked"; readonly by: Objection };

/** What speaks against applying it. */
export function objections(proposal: ShownProposal, chosen: number): readonly Objection[] {
  const found: Objection[] = [];
  const { breaches = [], outlook } = proposal;
  if (breaches.length) found.push({ kind: "unsafe", detail: breaches.map(({ path, detail }) => (path ? `${path} ${detail}` : detail)).join("; ") });
  if (outlook?.fitness === "conflicts") found.push({ kind: "conflicts", detail: (outlook.conflicts ?? []).map(({ path }) => path).join(", ") || (outlook.reason ?? "") });
  if (chosen === 0) found.push({ kind: "nothing" });
  if (proposal.evidenceStatus === "failed") found.push({ kind: "red", checks: redChecks(proposal) });
  else if (proposal.evidence?.checks?.some(isWorse)) found.push({ kind: "red", checks: redChecks(proposal) });
  const open = openFindings(proposal).filter(isMustFix);
  const [first] = open;
  if (first) found.push({ kind: "mustFix", count: open.length, first: first.description ?? "" });
  return found;
}

export const redChecks = (proposal: ShownProposal): readonly string[] =>
  (proposal.evidence?.checks ?? []).filter(({ after }) => !after.passed).map(({ check }) => check.name);

/** Red before and after, but with more failures or in another way. */
function isWorse({ before, after }: Compared): boolean {
  if (after.passed || !before || before.passed) return false;
  const [then, now] = [before.tests, after.tests];
  if (then && now) return now.failed > then.failed || now.passed + now.failed < then.passed + then.failed;
  return Boolean(then) || before.exitCode !== after.exitCode;
}

export const isMustFix = ({ severity }: Finding): boolean => severity === "critical" || severity === "major";

/** Findings of the last one who gave any, worst first; those that were mended since are left out. */
export function openFindings({ reviews = [] }: ShownProposal): readonly Finding[] {
  const latest = reviews.findLast(({ findings = [] }) => findings.length > 0);
  return (latest?.findings ?? [])
    .filter((finding) => finding.fixed_in_iteration == null)
    .toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

const SEVERITIES: readonly string[] = ["critical", "major", "minor", "suggestion"];

export function standing(decision: Decision, found: readonly Objection[], draft: Draft): Standing {
  const hasReason = draft.reason.trim() !== "";
  if (decision !== "apply") return hasReason || draft.comments > 0 ? { state: "ready" } : { state: "reason" };
  const by = found.find(({ kind }) => FINAL.has(kind));
  if (by) return { state: "blocked", by };
  return found.length && !hasReason ? { state: "reason" } : { state: "ready" };
}
