// Written by `make schema` from the Python types; changes belong there.

/** Where an event comes from (V2). */
export type Provenance = "user_input" | "orchestrator_to_worker" | "worker_proposal" | "announce_internal" | "announce_user" | "system";

/** What a turn cost, as far as it is known (V2); unknown is absent, not zero. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly model?: string;
  readonly cost?: number;
  readonly estimated?: boolean;
}

/** An agent of the team, by the name people know it by, and what it was given of the host's. */
export interface Member {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly network?: string;
  readonly variables?: readonly string[];
}

/** What a run sets out to do. */
export interface Start {
  readonly flow: string;
  readonly request: string;
  readonly team: readonly Member[];
  readonly head?: string | null;
}

/** The first event of a run. */
export interface RunStarted {
  readonly event: "run_started";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Start;
}

/** An interaction with everything said, as it is about to run. */
export interface ConfiguredInteraction {
  readonly patternId: string;
  readonly label: string;
  readonly roles?: Readonly<Record<string, readonly string[]>>;
  readonly data?: unknown;
  readonly traces?: boolean;
}

/** A pattern begins to run. */
export interface InteractionStarted {
  readonly event: "interaction_started";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: ConfiguredInteraction;
}

/** Why a run or an interaction ended, with what; `head` is the workspace's commit then. */
export interface End {
  readonly reason: string;
  readonly done: boolean;
  readonly head?: string | null;
  readonly result?: string;
}

/** A pattern has ended, and why. */
export interface InteractionEnded {
  readonly event: "interaction_ended";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: End;
}

/** A message on its way to an agent; `attempt` is above 1 when an earlier one was cut off. */
export interface TurnBegun {
  readonly turnId: string;
  readonly to: string;
  readonly messageId: string;
  readonly text: string;
  readonly role?: string;
  readonly taskId?: string;
  readonly attempt?: number;
  readonly revision?: number;
  readonly generation?: number | null;
  readonly step?: number;
}

/** An agent was asked. */
export interface TurnStarted {
  readonly event: "turn_started";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: TurnBegun;
}

/** What a turn took from the budget, in tokens and US dollars; partly guessed where unknown. */
export interface Charge {
  readonly tokens: number;
  readonly cost: number;
  readonly estimated?: boolean;
}

/** What an agent answered. */
export interface TurnDone {
  readonly turnId: string;
  readonly text: string;
  readonly ok?: boolean;
  readonly reason?: string;
  readonly taskId?: string;
  readonly durationMs?: number;
  readonly charge?: Charge | null;
  readonly step?: number;
  readonly to?: string;
}

/** An agent has answered, or will not. */
export interface TurnEnded {
  readonly event: "turn_ended";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: TurnDone;
}

/** How a long turn gets on; with `part` the step is that part of its answer. */
export interface Progress {
  readonly turnId: string;
  readonly step?: string;
  readonly files?: readonly string[];
  readonly taskId?: string;
  readonly part?: number;
  readonly line?: number;
}

/** An agent is still at it. */
export interface TurnProgressed {
  readonly event: "turn_progress";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Progress;
}

/** How many tests passed and failed, where the output says so. */
export interface TestsRun {
  readonly passed: number;
  readonly failed: number;
}

/** What the checks say on base + patch, before → after (D13). */
export interface Checked {
  readonly taskId: string;
  readonly status: string;
  readonly sentence: string;
  readonly tests?: TestsRun | null;
  readonly red?: readonly string[];
  readonly worse?: readonly string[];
}

/** Evidence was gathered. */
export interface ChecksRun {
  readonly event: "checks_run";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Checked;
}

/** Something waits for a person (D24). */
export interface PersonAsked {
  readonly askId: string;
  readonly person: string;
  readonly question: string;
  readonly scope: string;
  readonly taskId?: string;
}

/** A question lies in somebody's inbox. */
export interface AskedPerson {
  readonly event: "person_asked";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: PersonAsked;
}

/** A person has answered, or a deadline took the default. */
export interface PersonAnswered {
  readonly askId: string;
  readonly person: string;
  readonly answer?: string;
  readonly content?: unknown;
}

/** A question was answered. */
export interface AnsweredByPerson {
  readonly event: "person_answered";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: PersonAnswered;
}

/** A new frozen base (D7), and what in it differs from the one before. */
export interface Base {
  readonly generation: number;
  readonly reason: string;
  readonly files?: readonly string[];
  readonly notes?: readonly string[];
}

/** The workspace was frozen as it is. */
export interface GenerationTaken {
  readonly event: "generation_taken";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Base;
}

/** A landing that has begun; `transaction` is its name in the apply journal (D3). */
export interface Applying {
  readonly taskId: string;
  readonly transaction: string;
}

/** A change is about to reach the workspace; on resume its journal is looked up (D3). */
export interface ApplyStarted {
  readonly event: "apply_started";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Applying;
}

/** Why a task brought nothing to judge. */
export interface Failure {
  readonly taskId: string;
  readonly reason: string;
}

/** A task ended without a proposal. */
export interface TaskFailed {
  readonly event: "task_failed";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Failure;
}

/** A task of which words were enough: nothing was changed, and nothing had to be. */
export interface Answered {
  readonly taskId: string;
  readonly summary: string;
}

/** A task that may change nothing ended well without a proposal. */
export interface TaskAnswered {
  readonly event: "task_answered";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Answered;
}

/** A candidate that nobody landed (D6). */
export interface Discarded {
  readonly proposalId: string;
}

/** A candidate was let go. */
export interface ProposalDiscarded {
  readonly event: "proposal_discarded";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Discarded;
}

/** A file of a proposal, whole, or its hunks by number; 0 is the change of its mode (D13). */
export interface FileChoice {
  readonly path: string;
  readonly hunks?: readonly number[] | null;
}

/** A part of a proposal that a person has chosen; it is a proposal of its own (D13). */
export interface Part {
  readonly taskId: string;
  readonly proposalId: string;
  readonly partOf: string;
  readonly chosen?: readonly FileChoice[];
}

/** A person wants only a part of a change. */
export interface PartChosen {
  readonly event: "part_chosen";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Part;
}

/** What was run before the work, where its words are, and what the user should know of it. */
export interface Setup {
  readonly command: string;
  readonly log: string;
  readonly notes?: readonly string[];
}

/** What git ignores and the agents need was made. */
export interface SetupDone {
  readonly event: "setup_done";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Setup;
}

/** A folder of the workspace, and what it takes in bytes. */
export interface Folder {
  readonly path: string;
  readonly bytes: number;
}

/** Old runs whose sandboxes are removed, what that frees in bytes, and where most of it is. */
export interface Going {
  readonly runs: readonly string[];
  readonly frees: number;
  readonly largest?: readonly Folder[];
}

/** Sandboxes of old runs are about to be removed; proposals stay (D15). */
export interface CleaningUp {
  readonly event: "cleaning_up";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Going;
}

/** How a waiting proposal stands in the workspace of now: clean, merges, stale or conflicts. */
export interface Standing {
  readonly taskId: string;
  readonly proposalId: string;
  readonly fitness: string;
  readonly reason?: string;
  readonly conflicts?: readonly string[];
  readonly meets?: readonly string[];
}

/** The ground has moved, and a waiting change stands otherwise than before. */
export interface ProposalRechecked {
  readonly event: "proposal_rechecked";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Standing;
}

/** Something worth keeping, and where it comes from. */
export interface Note {
  readonly entry: string;
  readonly sources?: readonly string[];
}

/** Something was put on record. */
export interface Noted {
  readonly event: "noted";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Note;
}

/** What a member asked another one in the middle of its turn. */
export interface MemberQuestion {
  readonly to: string;
  readonly text: string;
}

/** A member asked another one, in the middle of its turn. */
export interface MemberAsked {
  readonly event: "member_asked";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: MemberQuestion;
}

/** What it was answered. */
export interface MemberReply {
  readonly to: string;
  readonly text: string;
}

/** The other one answered. */
export interface MemberAnswered {
  readonly event: "member_answered";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: MemberReply;
}

/** Something on the team's board. */
export interface PostedByMember {
  readonly number: number;
  readonly topic: string;
  readonly text: string;
}

/** A member put something on the team's board. */
export interface TeamPosted {
  readonly event: "team_posted";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: PostedByMember;
}

/** A message that needs no answer; `step` numbers the lines of its interaction's log. */
export interface Telling {
  readonly to: string;
  readonly text: string;
  readonly step?: number;
}

/** An agent was told something that needs no answer. */
export interface MessagePassed {
  readonly event: "message_passed";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Telling;
}

/** One of several, taken by the declared seed. */
export interface Draw {
  readonly step: string;
  readonly choice: string;
  readonly among: readonly string[];
  readonly why: string;
  readonly seed?: number;
}

/** A tie or an order was settled by drawing. */
export interface Drew {
  readonly event: "drew";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Draw;
}

/** A sentence the user should read. */
export interface Warned {
  readonly sentence: string;
}

/** Something the user should know. */
export interface WarningGiven {
  readonly event: "warning";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Warned;
}

/** Words of a person for an agent, which it hears with its next turn. */
export interface Told {
  readonly agent: string;
  readonly text: string;
}

/** A person said something to an agent, without being asked. */
export interface WorkerTold {
  readonly event: "worker_told";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Told;
}

/** A limit of an agent's service: it goes on after `until_ms`, or `to` does instead. */
export interface Limit {
  readonly turnId: string;
  readonly agent: string;
  readonly reason: string;
  readonly taskId?: string;
  readonly to?: string;
  readonly untilMs?: number | null;
  readonly partial?: string;
}

/** The service of an agent does not let it go on for now. */
export interface LimitReached {
  readonly event: "limit_reached";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Limit;
}

/** The process that ran it is gone; it waits for `resume` (D25). */
export interface RunInterrupted {
  readonly event: "run_interrupted";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
}

/** A task on its way to a worker. */
export interface Dispatch {
  readonly taskId: string;
  readonly workerId: string;
  readonly instruction: string;
}

/** A worker was given a task. */
export interface TaskDispatched {
  readonly event: "task_dispatched";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Dispatch;
}

/** A proposal as its worker hands it in. */
export interface Submission {
  readonly taskId: string;
  readonly changedFiles: number;
  readonly summary: string;
  readonly tests?: TestsRun | null;
}

/** A worker handed in a change. */
export interface ProposalSubmitted {
  readonly event: "proposal_submitted";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Submission;
}

/** The three verdicts there are. */
export type Decision = "apply" | "reject" | "revise";

/** The outcome of the gate (R1); `applied_at` is milliseconds since the epoch. */
export interface ProposalReview {
  readonly runId: string;
  readonly taskId: string;
  readonly decision: Decision;
  readonly reason?: string | null;
  readonly appliedAt?: number | null;
}

/** The gate decided. */
export interface ProposalReviewed {
  readonly event: "proposal_reviewed";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: ProposalReview;
}

export type WorkStatus = "ok" | "error" | "timeout";

/** To the orchestrator before the review, to the user after it (R4). */
export interface AnnounceMessage {
  readonly runId: string;
  readonly workerId: string;
  readonly workerName: string;
  readonly status: WorkStatus;
  readonly summary: string;
  readonly proposalPath?: string | null;
  readonly touchedFiles: readonly string[];
  readonly testsRun?: TestsRun | null;
  readonly durationMs: number;
}

/** What a worker's task came to, said to the orchestrator or to the user (R4). */
export interface Announced {
  readonly event: "announce";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: AnnounceMessage;
}

/** Files that reached the workspace, and the commit if one was made. */
export interface Landed {
  readonly taskId: string;
  readonly files: readonly string[];
  readonly commit?: string | null;
  readonly transaction?: string;
}

/** A change reached the workspace. */
export interface ProposalLanded {
  readonly event: "proposal_applied";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Landed;
}

/** A landed proposal that was taken back. */
export interface Undone {
  readonly taskId: string;
  readonly files: readonly string[];
}

/** A change was taken back. */
export interface ProposalUndone {
  readonly event: "proposal_undone";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Undone;
}

/** Whom the run waits for, and for what. */
export interface Waiting {
  readonly person: string;
  readonly question: string;
}

/** Nothing to do until a person answers (D25). */
export interface RunParked {
  readonly event: "run_parked";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: Waiting;
}

/** The run goes on. */
export interface RunResumed {
  readonly event: "run_resumed";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
}

/** The last event of a run. */
export interface RunEnded {
  readonly event: "run_ended";
  readonly actor: string;
  readonly provenance: Provenance;
  readonly usage?: Usage | null;
  readonly parentRunId?: string | null;
  readonly interactionId?: string | null;
  readonly edgeId?: string | null;
  readonly payload: End;
}

/** Where a run stands. */
export type RunStatus = "new" | "running" | "parked" | "interrupted" | "done" | "stopped";

/** One line of the list of runs; times in ms since the epoch. */
export interface RunSummary {
  readonly runId: string;
  readonly flow: string;
  readonly request: string;
  readonly team?: readonly string[];
  readonly status: RunStatus;
  readonly startedMs: number;
  readonly endedMs?: number | null;
  readonly reason?: string;
  readonly waitsFor?: string;
  readonly applied?: number;
  readonly tasks?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly isEstimate?: boolean;
}

/** All runs, the newest first. */
export interface RunsView {
  readonly head: string;
  readonly runs: readonly RunSummary[];
}

/** Who answers here; `head` is where a follower of the feed may begin. */
export interface ServerView {
  readonly version: string;
  readonly pid: number;
  readonly root: string;
  readonly epoch: string;
  readonly head?: string;
}

/** The body of a `person.ask`. */
export interface PersonAsk {
  readonly ask_id: string;
  readonly person: string;
  readonly run_id: string;
  readonly agent_id: string;
  readonly scope: string;
  readonly text: string;
  readonly instruction?: string;
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly deadline_ms?: number;
  readonly default?: unknown;
  readonly images?: readonly string[];
  readonly problem?: string;
  readonly proposal?: string;
}

/** What waits for a person. */
export interface AsksView {
  readonly head: string;
  readonly asks: readonly PersonAsk[];
}

/** Words for whoever asked. */
export interface TextEvent {
  readonly type: "text";
  readonly ts: number;
  readonly seq: number;
  readonly text: string;
}

/** Words the worker wrote to itself. */
export interface ThinkingEvent {
  readonly type: "thinking";
  readonly ts: number;
  readonly seq: number;
  readonly text: string;
}

/** A tool was started; `input` is kept as the JSON it came in. */
export interface ToolCallEvent {
  readonly type: "tool_call";
  readonly ts: number;
  readonly seq: number;
  readonly name: string;
  readonly callId?: string;
  readonly input?: unknown;
}

/** Content by its hash (D35). */
export interface BlobRef {
  readonly sha256: string;
  readonly size: number;
  readonly media: string;
}

/** What the tool gave back; `exit_code` where it was a command. */
export interface ToolResultEvent {
  readonly type: "tool_result";
  readonly ts: number;
  readonly seq: number;
  readonly output: string | BlobRef;
  readonly callId?: string;
  readonly exitCode?: number;
  readonly failed?: boolean;
}

/** How a file differs from the base (S4); a rename is deleted + added (D14). */
export type ChangeStatus = "added" | "modified" | "deleted";

/** A change the worker reported itself; the proposal's diff is what counts. */
export interface FileChangeEvent {
  readonly type: "file_change";
  readonly ts: number;
  readonly seq: number;
  readonly path: string;
  readonly status: ChangeStatus;
}

/** Tokens and money, as the worker counts them. */
export interface UsageEvent {
  readonly type: "usage";
  readonly ts: number;
  readonly seq: number;
  readonly usage: Usage;
}

/** The worker's own session id, needed to continue it for a revision (D18). */
export interface SessionEvent {
  readonly type: "session";
  readonly ts: number;
  readonly seq: number;
  readonly sessionId: string;
  readonly model?: string;
}

/** The worker tries a model call again by itself. */
export interface RetryEvent {
  readonly type: "retry";
  readonly ts: number;
  readonly seq: number;
  readonly attempt: number;
  readonly reason: string;
  readonly waitMs?: number;
}

/** Why a worker's turn failed, coarse enough to decide what to do next. */
export type FailureClass = "auth" | "rate_limit" | "quota" | "model_not_found" | "server" | "network" | "timeout" | "stalled" | "turn_limit" | "handed_off" | "denied" | "cancelled" | "crash" | "unknown";

/** The turn, or a part of it, failed. */
export interface ErrorEvent {
  readonly type: "error";
  readonly ts: number;
  readonly seq: number;
  readonly class: FailureClass;
  readonly message: string;
}

/** The turn's final words; the last event of a turn that ended by itself. */
export interface ResultEvent {
  readonly type: "result";
  readonly ts: number;
  readonly seq: number;
  readonly text: string;
  readonly ok?: boolean;
}

/** A request that its processes made through the egress proxy (D11). */
export interface NetworkEvent {
  readonly type: "network";
  readonly ts: number;
  readonly seq: number;
  readonly method: string;
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  readonly status?: number;
  readonly sent?: number;
  readonly received?: number;
  readonly ms?: number;
  readonly reason?: string;
}

/** A line of the worker's output that no reader understood, kept as it was. */
export interface RawEvent {
  readonly type: "raw";
  readonly ts: number;
  readonly seq: number;
  readonly line: string;
}

/** One event of an agent's transcript, with its number in the store. */
export interface TranscriptEntry {
  readonly seq: number;
  readonly agent: string;
  readonly event: TextEvent | ThinkingEvent | ToolCallEvent | ToolResultEvent | FileChangeEvent | UsageEvent | SessionEvent | RetryEvent | ErrorEvent | ResultEvent | NetworkEvent | RawEvent;
}

/** What agents said and did so far. */
export interface TranscriptView {
  readonly head: string;
  readonly entries: readonly TranscriptEntry[];
}

/** Where a task stands; the board's columns. */
export type TaskStatus = "dispatched" | "in_review" | "revising" | "applied" | "rejected" | "failed" | "answered" | "undone";

/** One task as its events tell it. */
export interface TaskState {
  readonly task_id: string;
  readonly worker: string;
  readonly instruction: string;
  readonly status?: TaskStatus;
  readonly attempts?: number;
  readonly summary?: string;
  readonly files?: readonly string[];
  readonly reason?: string;
  readonly fitness?: string;
  readonly standing?: string;
}

/** A run as its events tell it. */
export interface RunState {
  readonly run_id?: string;
  readonly status?: RunStatus;
  readonly flow?: string;
  readonly request?: string;
  readonly names?: Readonly<Record<string, string>>;
  readonly tasks?: Readonly<Record<string, TaskState>>;
  readonly waits_for?: string;
  readonly reason?: string;
  readonly result?: string;
  readonly landed?: readonly string[];
  readonly commit?: string | null;
  readonly head?: string | null;
  readonly seq?: number;
}

/** A run as a page opens it; the live feed goes on after `head`. */
export interface WindowView {
  readonly head: string;
  readonly state: RunState;
  readonly summary: RunSummary;
  readonly team: readonly Member[];
  readonly events: readonly unknown[];
  readonly earlier: boolean;
}

/** A run that has begun. */
export interface StartedView {
  readonly runId: string;
}

/** The turns that were told to end. */
export interface StoppedView {
  readonly turns: readonly string[];
}

/** A flow of the workspace; `problem` says why it cannot start. */
export interface FlowView {
  readonly name: string;
  readonly request?: string;
  readonly limits?: string;
  readonly problem?: string;
}

/** All flows, whether a request alone can be carried out too, and what images may go along. */
export interface FlowsView {
  readonly flows: readonly FlowView[];
  readonly mostImages: number;
  readonly largestImage: number;
  readonly command?: string;
}

/** A run to be started. */
export interface RunOrder {
  readonly flow: string;
  readonly flowText: string;
  readonly request: string;
  readonly person?: string;
  readonly approvePlan?: boolean;
  readonly planOnly?: boolean;
  readonly unsafe?: boolean;
  readonly maxParallel?: number;
  readonly parentRunId?: string | null;
  readonly record?: string;
  readonly replay?: string;
  readonly images?: readonly BlobRef[];
}

/** The worst case of one part of a flow, or of all; null is without a bound (D19). */
export interface Bounded {
  readonly name: string;
  readonly turns: number | null;
  readonly messages: number | null;
  readonly minutes: number | null;
  readonly tokens: string;
  readonly cost: string;
}

/** An order that can be given as it is, and the most it can need. */
export interface PlannedRun {
  readonly order: RunOrder;
  readonly limits: string;
  readonly bounds: readonly Bounded[];
  readonly unbounded?: readonly string[];
  readonly onTop?: readonly string[];
}

/** What is on the disk of a run, in bytes; `reason` is why it stays. */
export interface Leftover {
  readonly runId: string;
  readonly bytes: number;
  readonly reason?: string;
}

/** What a clean-up removes, or has removed; `images` is what those of old runs free of it. */
export interface CleanUp {
  readonly going: readonly Leftover[];
  readonly staying: readonly Leftover[];
  readonly frees: number;
  readonly images?: number;
}

/** What a run may use before it ends by itself; null is without a limit. */
export interface Budget {
  readonly turns?: number | null;
  readonly messages?: number | null;
  readonly minutes?: number | null;
  readonly tokens?: number | null;
  readonly cost?: number | null;
}

/** A task whose change was taken back, or the sentence why it could not be. */
export interface UndoneTask {
  readonly taskId: string;
  readonly files?: readonly string[];
  readonly problem?: string;
}

/** What was taken back, task by task. */
export interface UndoneView {
  readonly undone: readonly UndoneTask[];
}

/** What came back; `content` is text, or data where a form was filled in. */
export interface PersonAnswer {
  readonly content: unknown;
  readonly person?: string;
}

/** Where a proposal stands; `TRANSITIONS` holds every legal move. */
export type ProposalState = "created" | "evidence" | "waiting" | "stale" | "conflicts" | "applying" | "applied" | "undone" | "rejected" | "revised" | "discarded";

/** One hunk; `number` is its name in a choice and stays the same for this proposal. */
export interface ShownHunk {
  readonly number: number;
  readonly oldStart?: number;
  readonly oldCount?: number;
  readonly newStart?: number;
  readonly newCount?: number;
  readonly heading?: string;
}

/** One file; without `hunks` it is taken whole or not at all. */
export interface ShownFile {
  readonly path: string;
  readonly status: ChangeStatus;
  readonly added?: number;
  readonly removed?: number;
  readonly binary?: boolean;
  readonly hunks?: readonly ShownHunk[];
}

/** One command whose exit code says yes or no; `declared` by a flow, or detected. */
export interface Check {
  readonly name: string;
  readonly command: string;
  readonly expectedExitCode?: number;
  readonly declared?: boolean;
}

/** One check on one tree. */
export interface CheckResult {
  readonly passed: boolean;
  readonly exitCode: number | null;
  readonly output?: string;
  readonly tests?: TestsRun | null;
  readonly unsound?: string;
}

/** One check before and after; `before` None when it was not run on the base. */
export interface Compared {
  readonly check: Check;
  readonly before: CheckResult | null;
  readonly after: CheckResult;
}

/** One file; `reason` continues a sentence that begins with the path. */
export interface Steering {
  readonly path: string;
  readonly reason: string;
}

/** All checks of a proposal, on the generation that it was made on. */
export interface Evidence {
  readonly generation: string;
  readonly checks?: readonly Compared[];
  readonly steering?: readonly Steering[];
}

/** Why a path, or the patch as a whole, may not land. */
export type BreachKind = "patch_too_large" | "unreadable" | "not_plain_form" | "no_change" | "does_not_apply" | "wrong_base" | "misplaced_hunk" | "duplicate_path" | "name_clash" | "file_and_folder" | "absolute_path" | "parent_folder" | "bad_name" | "internal_folder" | "left_out_folder" | "submodule" | "outside_allowed" | "outside_scope" | "forbidden_mode" | "link_leaves" | "link_into_internal" | "through_link" | "special_file" | "embedded_repository" | "file_too_large" | "total_too_large" | "too_many_files";

/** One reason; `path` is empty when it is about the patch as a whole. */
export interface Breach {
  readonly kind: BreachKind;
  readonly path: string;
  readonly detail: string;
}

/** One secret; `excerpt` is the line up to it. */
export interface SecretFinding {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
  readonly excerpt: string;
}

/** What makes it run. */
export type Occasion = "entering_the_folder" | "opening_in_an_editor" | "git" | "ci" | "install_or_build" | "tests" | "starting_python" | "container" | "make" | "coding_agent" | "made_executable" | "link" | "name";

/** One thing to look at twice; `detail` continues a sentence that begins with the path. */
export interface RunNote {
  readonly path: string;
  readonly occasion: Occasion;
  readonly detail: string;
}

/** How bad a finding is (R5). */
export type Severity = "critical" | "major" | "minor" | "suggestion";

/** The line of the changed file that a finding is about, as far as the reviewer said it. */
export interface FindingPlace {
  readonly file?: string;
  readonly line_start?: number | null;
}

/** As much of W2's Finding as gate and page need; unknown fields are left to `protocol`. */
export interface Finding {
  readonly severity: Severity;
  readonly description?: string;
  readonly finding_id?: string;
  readonly fixed_in_iteration?: number | null;
  readonly location?: FindingPlace | null;
}

/** What somebody said about it. */
export interface ShownReview {
  readonly by: string;
  readonly decision: Decision;
  readonly reason?: string;
  readonly findings?: readonly Finding[];
}

/** CLEAN: nothing moved. MERGES: it lands beside other edits of the same files. STALE: it would land, but its evidence was made on something else. CONFLICTS: it cannot land. */
export type Fitness = "clean" | "merges" | "stale" | "conflicts";

/** What of the user's is in the way. */
export type ConflictKind = "both_changed" | "user_added" | "user_changed" | "user_deleted" | "in_the_way" | "another_mount";

/** One path that cannot be merged. */
export interface Conflict {
  readonly kind: ConflictKind;
  readonly path: string;
  readonly detail: string;
}

/** How one proposal stands; `moved` are its files that are not as its base has them. */
export interface Outlook {
  readonly proposalId: string;
  readonly fitness: Fitness;
  readonly moved?: readonly string[];
  readonly merged?: readonly string[];
  readonly conflicts?: readonly Conflict[];
  readonly reason?: string;
}

/** How bad it is; the first two merge, the others do not. */
export type CollisionKind = "same_change" | "same_file" | "same_lines" | "whole_file" | "file_and_folder" | "name_clash";

/** Proposals that meet at one place; lines are those of the base, counted from 1. */
export interface Collision {
  readonly path: string;
  readonly kind: CollisionKind;
  readonly proposals: readonly string[];
  readonly firstLine?: number | null;
  readonly lastLine?: number | null;
}

/** One round of a task, counted from 1; the decision is absent while it waits for one. */
export interface Attempt {
  readonly number: number;
  readonly proposalId: string;
  readonly decision?: Decision | null;
  readonly reason?: string;
}

/** The proposal that this one is a part of, and which part. */
export interface DerivedFrom {
  readonly proposalId: string;
  readonly patchSha256: string;
  readonly chosen: readonly FileChoice[];
}

/** Everything about one attempt at a task; `ask_id` is what an answer goes to, if it waits. */
export interface ShownProposal {
  readonly runId: string;
  readonly taskId: string;
  readonly proposalId: string;
  readonly attempt: number;
  readonly worker: string;
  readonly status: ProposalState;
  readonly generation: number;
  readonly createdAt: string;
  readonly instruction?: string;
  readonly summary?: string;
  readonly files?: readonly ShownFile[];
  readonly evidence?: Evidence | null;
  readonly evidenceStatus?: string;
  readonly evidenceSentence?: string;
  readonly breaches?: readonly Breach[];
  readonly secrets?: readonly SecretFinding[];
  readonly selfRunning?: readonly RunNote[];
  readonly reviews?: readonly ShownReview[];
  readonly outlook?: Outlook | null;
  readonly overlaps?: readonly Collision[];
  readonly askId?: string | null;
  readonly attempts?: readonly Attempt[];
  readonly derivedFrom?: DerivedFrom | null;
}

export type RunEvent =
  | RunStarted
  | InteractionStarted
  | InteractionEnded
  | TurnStarted
  | TurnEnded
  | TurnProgressed
  | ChecksRun
  | AskedPerson
  | AnsweredByPerson
  | GenerationTaken
  | ApplyStarted
  | TaskFailed
  | TaskAnswered
  | ProposalDiscarded
  | PartChosen
  | SetupDone
  | CleaningUp
  | ProposalRechecked
  | Noted
  | MemberAsked
  | MemberAnswered
  | TeamPosted
  | MessagePassed
  | Drew
  | WarningGiven
  | WorkerTold
  | LimitReached
  | RunInterrupted
  | TaskDispatched
  | ProposalSubmitted
  | ProposalReviewed
  | Announced
  | ProposalLanded
  | ProposalUndone
  | RunParked
  | RunResumed
  | RunEnded;

/** An event with its place in the one order of everything, and its time in ms since the epoch. */
export type Recorded = RunEvent & {
  readonly seq: number;
  readonly ts: number;
  readonly runId: string;
};

/**
 * A run so far. The live feed goes on after `head`, which is `<epoch>-<seq>`; the last events may
 * be later than that already.
 */
export interface Snapshot {
  readonly head: string;
  readonly events: readonly Recorded[];
}
