// What the page asks of the server. The cookie that says who asks is the browser's matter.

export class ApiError extends Error {
  /** 0 when nobody answered. */
  readonly status: number;
  readonly code: string;

  constructor(message: string, status: number, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether it is the link that is missing, and not the thing that was asked for. */
  get isRefusal(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

const ROOT = "/api/v1";

interface Asking {
  readonly signal?: AbortSignal | undefined;
}

/** The address of something in the API; each part is quoted, so ids may hold anything. */
export function address(parts: readonly string[], query: Readonly<Record<string, string | number | boolean | undefined>> = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  const search = new URLSearchParams(given).toString();
  return `${ROOT}/${parts.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export async function get<T>(at: string, asking: Asking = {}): Promise<T> {
  return (await (await ask(at, { ...signal(asking), headers: { accept: "application/json" } })).json()) as T;
}

export async function getText(at: string, asking: Asking = {}): Promise<string> {
  return (await ask(at, signal(asking))).text();
}

/** Change something; gives what the server answers, or null where it has nothing to say. */
export async function post<T = null>(at: string, body: unknown = {}, asking: Asking = {}): Promise<T> {
  const answer = await ask(at, {
    ...signal(asking),
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return (answer.status === 204 ? null : await answer.json()) as T;
}

/** Hand a file to the server as it is. */
export async function send<T>(at: string, file: Blob): Promise<T> {
  const headers = { "content-type": "application/octet-stream", accept: "application/json" };
  return (await (await ask(at, { method: "POST", headers, body: file })).json()) as T;
}

const signal = ({ signal: given }: Asking): { signal?: AbortSignal } => (given ? { signal: given } : {});

async function ask(at: string, request: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(at, request);
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ApiError("the server does not answer", 0);
  }
  if (answer.ok) return answer;
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<ApiError> {
  if (answer.status === 401 || answer.status === 403) {
    return new ApiError("this browser has no access: open the link that agentcanvas printed", answer.status);
  }
  try {
    const said = (await answer.json()) as { payload?: { error_code?: string; error_message?: string } };
    const { error_code = "", error_message } = said.payload ?? {};
    if (error_message !== undefined) return new ApiError(error_message, answer.status, error_code);
  } catch {
    // Not one of ours; the number has to do.
  }
  return new ApiError(`the server answered ${answer.status}`, answer.status);
}
