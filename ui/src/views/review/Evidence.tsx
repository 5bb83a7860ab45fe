import { ChevronDown, CircleCheck, CircleDashed, CircleX, Combine, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Compared, ShownProposal } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { withoutStyles } from "../../model/review/ansi.ts";
import { plain, plainName } from "../../model/odd.ts";
import { overlapsOf } from "../../model/review/standing.ts";
import { openFindings } from "../../model/review/verdict.ts";
import type { Names } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { replaceArgs } from "../../shell/route.ts";
import { Severity } from "./Severity.tsx";
import { Trail } from "./Trail.tsx";
import { Words } from "../../parts/Words.tsx";
import { Visible, VisibleName } from "../../parts/Visible.tsx";
import { type Reviewed, placeOfFinding } from "./reviewed.ts";

interface Props {
  readonly reviewed: Reviewed;
  readonly names: Names;
  readonly onPlace: (path: string, line: number | null) => void;
}

const STATES = { passed: "ok", failed: "danger", red_before: "warn", unsound: "warn", unverified: "warn" } as const;

/** What speaks for the change and against it, beside the decision. */
export function Evidence({ reviewed, names, onPlace }: Props) {
  const t = useT();
  const { proposal } = reviewed;
  const status = proposal.evidenceStatus as keyof typeof STATES | "" | undefined;
  const checks = proposal.evidence?.checks ?? [];
  const steering = proposal.evidence?.steering ?? [];
  const findings = openFindings(proposal);
  return (
    <aside className="review-side" aria-label={t("review.evidence")} data-panel="evidence">
      {proposal.summary && (
        <Part title={t("review.summary")}>
          <p className="said">
            <Words text={proposal.summary} />
          </p>
        </Part>
      )}
      <Part
        title={t("review.evidence")}
        aside={
          status && (
            <span className="pill" data-tone={STATES[status]}>
              {t(`review.checks.${status}`)}
            </span>
          )
        }
      >
        {checks.length > 0 ? (
          <div className="checks">
            <div className="checks-head" aria-hidden="true">
              <span>{t("review.check")}</span>
              <span>{t("review.base")}</span>
              <span>{t("review.withPatch")}</span>
            </div>
            {checks.map((compared) => (
              <CheckRow key={compared.check.name} compared={compared} />
            ))}
          </div>
        ) : (
          <p className="subtle">{t(proposal.breaches?.length ? "review.notChecked" : "review.noChecks")}</p>
        )}
        {checks.length > 0 && <p className="hint subtle">{t("review.ranOn", { base: plain(proposal.evidence?.generation ?? "") })}</p>}
        {checks.some(({ after }) => after.unsound) && (
          <p className="hint" data-tone="warn">
            <Visible text={checks.find(({ after }) => after.unsound)?.after.unsound ?? ""} />
          </p>
        )}
        {steering.length > 0 && (
          <>
            <p className="hint" data-tone="warn">
              {t("review.steering")}
            </p>
            <ul className="safety">
              {steering.map(({ path, reason }) => (
                <Fact key={path} tone="warn">
                  <code dir="ltr">{plainName(path)}</code> <Visible text={reason} />
                </Fact>
              ))}
            </ul>
          </>
        )}
      </Part>
      <Part title={t("review.findings")} aside={findings.length > 0 && <span className="subtle">{t("review.open", { count: findings.length })}</span>}>
        {findings.length === 0 && <p className="subtle">{t("review.noFindings")}</p>}
        <ul className="findings">
          {findings.map((finding, index) => {
            const { file = "", line_start: line } = finding.location ?? {};
            return (
              <li key={index}>
                <Severity severity={finding.severity} />
                <div>
                  <p className="said">
                    <Words text={finding.description ?? ""} />
                  </p>
                  {file && (
                    <button
                      type="button"
                      className="place-link"
                      disabled={!placeOfFinding(finding, reviewed.all) && !reviewed.all.some(({ path }) => path === file)}
                      onClick={() => {
                        onPlace(file, line ?? null);
                      }}
                    >
                      <code dir="ltr">
                        {plainName(file)}
                        {line != null && `:${line}`}
                      </code>
                    </button>
                  )}
                </div>
              </li>
            );
          })}
        </ul>
      </Part>
      <Safety proposal={proposal} onPlace={onPlace} />
      <History reviewed={reviewed} />
      <Part title={t("review.why")}>
        <Trail reviewed={reviewed} names={names} />
      </Part>
    </aside>
  );
}

function Part({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="side-part">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

function CheckRow({ compared: { check, before, after } }: { compared: Compared }) {
  const t = useT();
  return (
    <details className="check-row">
      <summary>
        <span className="ellipsis" title={plain(check.command)}>
          <ChevronDown size={12} aria-hidden /> {plain(check.name)}
        </span>
        <span>
          <span className="unseen">{t("review.base")}</span> <Outcome result={before} />
        </span>
        <span>
          <span className="unseen">{t("review.withPatch")}</span> <Outcome result={after} />
        </span>
      </summary>
      <p className="check-command">
        <code>{plain(check.command)}</code>
      </p>
      <pre className="output" tabIndex={0} aria-label={t("review.outputOf", { check: plain(check.name) })}>
        <Visible text={withoutStyles(after.output ?? "") || t("review.noOutput")} />
      </pre>
    </details>
  );
}

function Outcome({ result }: { result: Compared["before"] }) {
  const t = useT();
  if (!result) return <span className="subtle">–</span>;
  const { passed, tests } = result;
  return (
    <span className="num outcome" data-tone={passed ? "ok" : "danger"}>
      {passed ? <CircleCheck size={12} aria-hidden /> : <CircleX size={12} aria-hidden />}
      {tests ? `${tests.passed}/${tests.passed + tests.failed}` : t(passed ? "review.passed" : "review.failed")}
      {tests && <span className="unseen">{t(passed ? "review.passed" : "review.failed")}</span>}
    </span>
  );
}

interface SafetyProps {
  readonly proposal: ShownProposal;
  readonly onPlace: Props["onPlace"];
}

function Safety({ proposal, onPlace }: SafetyProps) {
  const t = useT();
  const { outlook, breaches = [], secrets = [], selfRunning = [], files = [], askId } = proposal;
  const overlaps = overlapsOf(proposal);
  const binaries = files.filter(({ binary }) => binary).length;
  const fits = { clean: "review.fits", merges: "review.merges", stale: "review.isStale", conflicts: "review.conflictsWith" } as const;
  return (
    <Part title={t("review.safety")}>
      <ul className="safety">
        {askId != null && outlook && (
          <Fact tone={outlook.fitness === "clean" || outlook.fitness === "merges" ? "ok" : outlook.fitness === "stale" ? "warn" : "danger"}>
            {t(fits[outlook.fitness])}
            {(outlook.conflicts ?? []).map(({ path }) => (
              <code key={path}>{plainName(path)}</code>
            ))}
          </Fact>
        )}
        {breaches.length === 0 && <Fact tone="ok">{t("review.inScope")}</Fact>}
        {breaches.map(({ path, detail }, index) => (
          <Fact key={index} tone="danger">
            <VisibleName name={path ? `${path} ${detail}` : detail} />
          </Fact>
        ))}
        {secrets.length === 0 && <Fact tone="ok">{t("review.noSecrets")}</Fact>}
        {secrets.map(({ path, line, rule }, index) => (
          <Fact key={index} tone="danger">
            {t("review.secret", { rule: plain(rule) })}{" "}
            <button
              type="button"
              className="place-link"
              onClick={() => {
                onPlace(path, line);
              }}
            >
              <code dir="ltr">
                {plainName(path)}:{line}
              </code>
            </button>
          </Fact>
        ))}
        {selfRunning.map(({ path, detail }, index) => (
          <Fact key={index} tone="warn">
            <code>{plainName(path)}</code> <Visible text={detail} />
          </Fact>
        ))}
        {binaries > 0 && <Fact tone="warn">{t("review.binaries", { count: binaries })}</Fact>}
        {overlaps.others.map((other) => (
          <Fact key={other} icon={<Combine size={14} aria-hidden />} tone="warn">
            {t("review.overlaps", { other: plain(other) })} <code>{(overlaps.paths.get(other) ?? []).map(plainName).join(", ")}</code>
            <p className="subtle">{t("review.overlapsWhy", { other: plain(other) })}</p>
          </Fact>
        ))}
      </ul>
    </Part>
  );
}

const ICONS = { ok: CircleCheck, warn: TriangleAlert, danger: CircleX, muted: CircleDashed };

function Fact({ tone, icon, children }: { tone: keyof typeof ICONS; icon?: ReactNode; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <li>
      <span data-tone={tone} className="fact-icon">
        {icon ?? <Icon size={14} aria-hidden />}
      </span>
      <div>{children}</div>
    </li>
  );
}

function History({ reviewed }: { reviewed: Reviewed }) {
  const t = useT();
  const { attempts = [] } = reviewed.proposal;
  if (attempts.length === 0) return null;
  const TONES = { apply: "ok", revise: "warn", reject: "danger" } as const;
  return (
    <Part title={t("review.history")}>
      <ol className="rounds">
        {attempts.map(({ number, decision, reason }) => (
          <li key={number} data-current={number === reviewed.attempt || undefined}>
            <Button
              small
              look="ghost"
              aria-current={number === reviewed.attempt ? "true" : undefined}
              title={t("review.showAttempt", { number })}
              onClick={() => {
                replaceArgs({ attempt: number === attempts.length ? "" : String(number) });
              }}
            >
              r{number}
            </Button>
            <div>
              <span data-tone={decision ? TONES[decision] : "warn"}>{decision ? t(`review.decided.${decision}`) : t("review.waits")}</span>
              {reason && (
                <p className="said subtle">
                  <Words text={reason} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ol>
    </Part>
  );
}
