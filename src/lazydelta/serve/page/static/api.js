// Questions to the server. The token is sent as a header, and kept in this tab alone.

import { exactJson } from "./format.js";
import { kept } from "./kept.js";

const TOKEN_KEY = "lazydelta.token";

export class ApiError extends Error {
  constructor(status, fault) {
    super(fault.message);
    this.status = status;
    this.fault = fault;
  }
}

// The server does not answer at all.
export class GoneError extends Error {}

export const token = kept("sessionStorage", TOKEN_KEY);

export function canStream() {
  return typeof ReadableStream === "function" && typeof Response === "function" && "body" in Response.prototype;
}

export async function ask(path, options = {}) {
  return exactJson(await whole(await request(path, options), options));
}

// Events as they come: {name, value}. Where the browser cannot read a body bit by bit, all come at its end.
export async function* stream(path, options = {}) {
  const response = await request(path, options);
  const parser = new EventParser();
  if (!canStream() || !response.body) {
    yield* parser.take(await whole(response, options));
    return;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* parser.take(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    throw gone(error, options);
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function whole(response, options) {
  try {
    return await response.text();
  } catch (error) {
    throw gone(error, options);
  }
}

// What it means that a body broke off.
function gone(error, { signal }) {
  if (signal?.aborted) return new DOMException("cancelled", "AbortError");
  return error instanceof TypeError ? new GoneError("the server has gone") : error;
}

async function request(path, { body, signal } = {}) {
  const headers = {};
  const known = token.get();
  if (known) headers.Authorization = `Bearer ${known}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(`api/${path}`, document.baseURI), {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new GoneError("the server does not answer");
  }
  if (response.ok) return response;
  throw new ApiError(response.status, await faultOf(response));
}

async function faultOf(response) {
  try {
    const { error } = JSON.parse(await response.text());
    return { code: error.code, message: error.message, fix: error.fix ?? "", line: error.line ?? null,
      column: error.column ?? null };
  } catch {
    return { code: String(response.status), message: `the server says ${response.status}`, fix: "", line: null,
      column: null };
  }
}

class EventParser {
  #rest = "";

  *take(text) {
    this.#rest += text;
    let end;
    while ((end = this.#rest.indexOf("\n\n")) >= 0) {
      const lines = this.#rest.slice(0, end).split("\n");
      this.#rest = this.#rest.slice(end + 2);
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (name === "error") throw new ApiError(0, exactJson(data));
      if (name) yield { name, value: exactJson(data) };
      else yield { name: "", value: null };
    }
  }
}
