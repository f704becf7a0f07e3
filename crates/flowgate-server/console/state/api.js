// One call to the server. Every button of the console is one of these.

import { expire, session } from "./session.js";

/** An answer that takes longer is given up. */
const GIVE_UP_MS = 5000;

/** The server has not answered at all. */
export class Unanswered extends Error {}

/** The server has answered with a mistake: `{"error","field"}`. */
export class Refused extends Error {
  constructor(status, body, retryAfter) {
    super(typeof body?.error === "string" ? body.error : `HTTP ${status}`);
    this.status = status;
    this.field = body?.field ?? null;
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

/**
 * @param {string} path
 * @param {{ method?: string, json?: object, toml?: string, headers?: object, patience?: number, anonymous?: boolean, signal?: AbortSignal }} options
 * @returns {Promise<{ status: number, body: any, etag: string | null, changing: boolean }>} `changing`: the file was written a moment ago and may be half of what it will be
 */
export async function call(path, options = {}) {
  const { method = options.json || options.toml !== undefined ? "POST" : "GET", json, toml, patience = GIVE_UP_MS } = options;
  const headers = { ...options.headers };
  if (json) headers["Content-Type"] = "application/json";
  if (toml !== undefined) headers["Content-Type"] = "application/toml";
  const key = session.get()?.key;
  if (key && !options.anonymous) headers.Authorization = `Bearer ${key}`;
  const timeout = AbortSignal.timeout(patience);
  const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
  let response, text;
  try {
    response = await fetch(path, { method, headers, body: json ? JSON.stringify(json) : toml, signal, cache: "no-store", credentials: "omit" });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unanswered();
  }
  const body = parse(response, text);
  if (response.ok) return { status: response.status, body, etag: response.headers.get("ETag"), changing: response.headers.get("X-Flowgate-File") === "changing" };
  // A key that has been exchanged in the meantime is not to blame for the old one's end.
  if (response.status === 401 && !options.anonymous && session.get()?.key === key) expire();
  throw new Refused(response.status, body, Number(response.headers.get("Retry-After")) || null);
}

function parse(response, text) {
  if (!(response.headers.get("Content-Type") ?? "").includes("json")) return response.ok ? text : { error: text.trim() || undefined };
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
