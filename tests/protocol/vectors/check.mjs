// A second implementation of docs/seal.md, with nothing but Node: checks every vector beside it.
// Run `node check.mjs`; it prints one line and exits 0, or one line for each vector that differs.

import crypto from "node:crypto";
import { readFileSync } from "node:fs";

const load = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const hex = (text) => Buffer.from(text, "hex");

class Refusal extends Error {
  constructor(code, detail = "") {
    super(`${code} ${detail}`);
    this.code = code;
    this.detail = detail;
  }
}
const malformed = (pointer = "") => new Refusal("INVALID_MESSAGE_FORMAT", pointer);

// --- JSON by the letter: like JSON.parse, but repeated keys and half characters are refused ------

const MAX_DEPTH = 64;
const MAX_NUMBER = 2 ** 53 - 1;
const step = (key) => "/" + String(key).replaceAll("~", "~0").replaceAll("/", "~1");
const whole = (text) => text.isWellFormed?.() ?? !/\p{Surrogate}/u.test(text);

function read(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    JSON.parse(text); // the grammar; what follows may rely on it
  } catch {
    throw malformed();
  }
  let at = 0;
  const blank = () => { while (" \t\r\n".includes(text[at]) && at < text.length) at++; };
  const scalar = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)[0];
    at += found.length;
    return JSON.parse(found);
  };
  const string = () => scalar(/"(?:[^"\\]|\\.)*"/y);
  function items(close, one) {
    at++;
    for (blank(); text[at] !== close; blank()) {
      if (text[at] === ",") { at++; blank(); }
      one();
    }
    at++;
  }
  function value(pointer, depth) {
    blank();
    if ((text[at] === "{" || text[at] === "[") && depth > MAX_DEPTH) throw malformed(pointer);
    if (text[at] === "{") {
      const members = new Map();
      items("}", () => {
        const key = string();
        if (members.has(key)) throw malformed(pointer + step(key));
        blank();
        at++; // the colon
        members.set(key, value(pointer + step(key), depth + 1));
      });
      return members;
    }
    if (text[at] === "[") {
      const list = [];
      items("]", () => list.push(value(pointer + step(list.length), depth + 1)));
      return list;
    }
    return text[at] === '"' ? string() : scalar(/[^\s,\]}]+/y);
  }
  return value("", 1);
}

// --- RFC 8785 -----------------------------------------------------------------------------------

function canonical(value, pointer = "") {
  if (value instanceof Map) {
    const keys = [...value.keys()].sort(); // JavaScript compares UTF-16 code units
    const member = (key) => {
      if (!whole(key)) throw malformed(pointer);
      return `${JSON.stringify(key)}:${canonical(value.get(key), pointer + step(key))}`;
    };
    return `{${keys.map(member).join(",")}}`;
  }
  if (Array.isArray(value)) {
    return `[${value.map((item, index) => canonical(item, pointer + step(index))).join(",")}]`;
  }
  if (typeof value === "number" && !(Math.abs(value) <= MAX_NUMBER)) throw malformed(pointer);
  if (typeof value === "string" && !whole(value)) throw malformed(pointer);
  return JSON.stringify(value);
}

const without = (map, ...names) => new Map([...map].filter(([name]) => !names.includes(name)));

// --- keys ---------------------------------------------------------------------------------------

const { keys, now_ms: NOW } = load("keys.json");

function opening(owners, algorithm, id) {
  const found = keys.filter(
    (key) => owners.includes(key.owner) && key.algorithm === algorithm
      && (id === undefined || key.id === id)
      && NOW >= (key.not_before_ms ?? 0) && NOW <= (key.not_after_ms ?? Infinity),
  );
  if (found.length === 0) throw new Refusal("UNKNOWN_KEY");
  return found;
}

const publicKey = (bytes) => crypto.createPublicKey({
  format: "jwk", key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") },
});
const privateKey = (seed) => crypto.createPrivateKey({
  format: "der", type: "pkcs8",
  key: Buffer.concat([hex("302e020100300506032b657004220420"), seed]),
});
const hmac = (key, data) => crypto.createHmac("sha256", key).update(data).digest();

function holds(key, data, signature) {
  if (key.algorithm === "ED25519") {
    return crypto.verify(null, data, publicKey(hex(key.public_hex)), signature);
  }
  const expected = hmac(hex(key.secret_hex), data);
  return expected.length === signature.length && crypto.timingSafeEqual(expected, signature);
}

// --- signatures ---------------------------------------------------------------------------------

const SENDER = { mac: ["from"], spec022: ["from_agent", "agent_id"], acp: ["from"] };
const ID = { mac: "message_id", spec022: "message_id", acp: "id" };
const SIGNATURE =
  /^((SHA256|ED25519):(?:([A-Za-z0-9._-]{1,64}):)?)([A-Za-z0-9_-]+)$/;
const TIME =
  /^\d{4}-(\d\d)-(\d\d)[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

function text(map, path) {
  let value = map;
  for (const name of path) value = value instanceof Map ? value.get(name) : undefined;
  if (typeof value !== "string" || value === "") throw malformed("/" + path.join("/"));
  return value;
}

function milliseconds(time) {
  const match = TIME.exec(time);
  const ms = match ? Date.parse(time) : NaN;
  // Date.parse rolls 30 February over into March; the day is checked against its own month.
  const days = match ? new Date(Date.UTC(+time.slice(0, 4), +match[1], 0)).getUTCDate() : 0;
  if (Number.isNaN(ms) || +match[2] > days) throw malformed("/timestamp");
  return ms;
}

function verify(bytes, dialect) {
  const message = read(bytes);
  if (!(message instanceof Map)) throw malformed();
  const holder = dialect === "mac" ? message : message.get("x_agentcanvas");
  if (!(holder instanceof Map) || !holder.has("signature")) throw new Refusal("BAD_SIGNATURE");
  const written = holder.get("signature");
  const match = typeof written === "string" ? SIGNATURE.exec(written) : null;
  if (match === null) throw new Refusal("BAD_SIGNATURE");
  const [, head, algorithm, id, encoded] = match;
  const signature = Buffer.from(encoded, "base64url");
  if (signature.toString("base64url") !== encoded) throw new Refusal("BAD_SIGNATURE");

  const unsigned = dialect === "mac"
    ? without(message, "signature")
    : new Map(message).set("x_agentcanvas", without(holder, "signature"));
  const body = canonical(unsigned);
  const covered = `agentcanvas-signature-v1\n${head}\n${body}`;
  const signer = text(message, SENDER[dialect]);
  const key = opening([signer], algorithm, id)
    .find((candidate) => holds(candidate, Buffer.from(covered), signature));
  if (key === undefined) throw new Refusal("BAD_SIGNATURE");
  return {
    covered,
    written,
    result: {
      signer,
      key_id: key.id,
      algorithm,
      message_id: text(message, [ID[dialect]]),
      timestamp_ms: milliseconds(text(message, ["timestamp"])),
      fingerprint_hex: crypto.createHash("sha256").update(body).digest("hex"),
    },
  };
}

// --- encrypted payloads -------------------------------------------------------------------------

function unseal(key, nonce, ciphertext, tag, associated) {
  const cipher = crypto.createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 });
  cipher.setAAD(associated);
  cipher.setAuthTag(tag);
  try {
    return Buffer.concat([cipher.update(ciphertext), cipher.final()]);
  } catch {
    return null;
  }
}

function decrypt(bytes) {
  const shut = () => new Refusal("CANNOT_DECRYPT");
  const message = read(bytes);
  if (message.get("encrypted") !== true) throw shut();
  if (message.get("encryption_algorithm") !== "AES-256-GCM") throw shut();
  const metadata = message.get("metadata");
  const id = metadata instanceof Map ? metadata.get("encryption_key") : undefined;
  const encoded = message.get("payload");
  if (typeof encoded !== "string" || (id !== undefined && typeof id !== "string")) throw shut();
  const sealed = Buffer.from(encoded, "base64");
  if (sealed.toString("base64") !== encoded || sealed.length < 28) throw shut();

  const header = without(message, "payload", "signature");
  const associated = `agentcanvas-encryption-v1\n${canonical(header)}`;
  const parts = {
    nonce: sealed.subarray(0, 12), ciphertext: sealed.subarray(12, -16), tag: sealed.subarray(-16),
  };
  const parties = [text(message, ["from"]), text(message, ["to"])];
  for (const key of opening(parties, "AES-256-GCM", id)) {
    const plaintext = unseal(
      hex(key.secret_hex), parts.nonce, parts.ciphertext, parts.tag, Buffer.from(associated),
    );
    if (plaintext === null) continue;
    const payload = read(plaintext);
    if (!(payload instanceof Map)) throw malformed();
    return { key, associated, plaintext: plaintext.toString(), parts, payload: canonical(payload) };
  }
  throw shut();
}

// --- replay -------------------------------------------------------------------------------------

function guard(window) {
  const seen = new Map();
  return ({ now_ms, sender, message_id, timestamp_ms, fingerprint_hex }) => {
    if (Math.abs(now_ms - timestamp_ms) > window) return "replayed";
    const name = JSON.stringify([sender, message_id]);
    const before = seen.get(name);
    if (before !== undefined && before.timestamp_ms >= now_ms - window) {
      return before.fingerprint_hex === fingerprint_hex ? "repeated" : "replayed";
    }
    seen.set(name, { timestamp_ms, fingerprint_hex });
    return "admitted";
  };
}

// --- the check ----------------------------------------------------------------------------------

let checked = 0;
const differences = [];
function same(name, what, actual, expected) {
  checked++;
  const [a, b] = [actual, expected].map((value) => JSON.stringify(value));
  if (a !== b) differences.push(`${name}: ${what} is ${a}, the vector says ${b}`);
}
function attempt(name, action) {
  try {
    return action();
  } catch (error) {
    if (error instanceof Refusal) return error;
    differences.push(`${name}: ${error.stack}`);
    return null;
  }
}
const bytesOf = (item) => (item.wire_hex ? hex(item.wire_hex) : Buffer.from(item.wire));
const outcome = (result) => (result instanceof Refusal ? result.code : "opened");

const anchors = load("anchors.json");
for (const item of anchors.hmac_sha256) {
  same(item.source, "mac", hmac(hex(item.key_hex), hex(item.data_hex)).toString("hex"), item.mac_hex);
}
for (const item of anchors.ed25519) {
  const signature = crypto.sign(null, hex(item.data_hex), privateKey(hex(item.seed_hex)));
  same(item.source, "signature", signature.toString("hex"), item.signature_hex);
}
for (const item of anchors.aes_256_gcm) {
  const plaintext = unseal(
    hex(item.key_hex), hex(item.nonce_hex), hex(item.ciphertext_hex), hex(item.tag_hex),
    hex(item.associated_hex),
  );
  same(item.source, "plaintext", plaintext?.toString("hex"), item.plaintext_hex);
}

const forms = load("canonical.json");
for (const item of forms.accepted) {
  const result = attempt(item.name, () => canonical(read(Buffer.from(item.text))));
  same(item.name, "canonical text", result, item.canonical);
}
for (const item of forms.refused) {
  const result = attempt(item.name, () => canonical(read(Buffer.from(item.text))));
  same(item.name, "outcome", outcome(result), item.error);
  same(item.name, "pointer", result?.detail, item.pointer);
}

for (const item of load("signatures.json").cases) {
  const result = attempt(item.name, () => verify(bytesOf(item), item.dialect));
  same(item.name, "outcome", outcome(result), item.error ?? "opened");
  if (!item.expect || !result?.result) continue;
  same(item.name, "signed text", result.covered, item.signed_bytes);
  same(item.name, "signature", result.written, item.signature);
  same(item.name, "result", result.result, item.expect);
  const { signer, key_id: id, algorithm } = item.expect;
  const [key] = opening([signer], algorithm, id);
  const made = algorithm === "ED25519"
    ? crypto.sign(null, Buffer.from(item.signed_bytes), privateKey(hex(key.secret_hex)))
    : hmac(hex(key.secret_hex), item.signed_bytes);
  const value = item.signature.slice(item.signature.lastIndexOf(":") + 1);
  same(item.name, "signature made here", made.toString("base64url"), value);
}

for (const item of load("encryption.json").cases) {
  const result = attempt(item.name, () => decrypt(bytesOf(item)));
  same(item.name, "outcome", outcome(result), item.error ?? "opened");
  if (!item.expect || !result?.parts) continue;
  same(item.name, "key", { owner: result.key.owner, id: result.key.id }, item.key);
  same(item.name, "associated data", result.associated, item.associated_data);
  same(item.name, "plaintext", result.plaintext, item.plaintext);
  same(item.name, "nonce", result.parts.nonce.toString("hex"), item.nonce_hex);
  same(item.name, "ciphertext", result.parts.ciphertext.toString("hex"), item.ciphertext_hex);
  same(item.name, "tag", result.parts.tag.toString("hex"), item.tag_hex);
  const payload = canonical(read(Buffer.from(JSON.stringify(item.expect.payload))));
  same(item.name, "payload", result.payload, payload);
}

const replay = load("replay.json");
for (const item of replay.cases) {
  const admit = guard(replay.window_ms);
  item.steps.forEach((one, index) => same(`${item.name}, step ${index + 1}`, "outcome", admit(one), one.expect));
}

console.log(differences.join("\n") || `${checked} checks, no difference`);
process.exitCode = differences.length ? 1 : 0;
