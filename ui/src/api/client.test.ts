import { afterEach, expect, test, vi } from "vitest";
import { address, send } from "./client.ts";

afterEach(() => { vi.unstubAllGlobals(); });

test("a file goes to the server as it is, and its reference comes back", async () => {
  const ref = { sha256: "ab", size: 3, media: "image/png" };
  const asked = vi.fn(() => Promise.resolve(Response.json(ref, { status: 201 })));
  vi.stubGlobal("fetch", asked);
  const file = new Blob(["png"]);
  expect(await send(address(["images"]), file)).toEqual(ref);
  expect(asked).toHaveBeenCalledWith("/api/v1/images", expect.objectContaining({ method: "POST", body: file }));
});

test("what the server refuses is said in its words", async () => {
  const refusal = { error: { code: "VALIDATION_ERROR", message: "use PNG" } };
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(refusal, { status: 422 })));
  await expect(send(address(["images"]), new Blob(["<svg/>"]))).rejects.toThrow();
});
