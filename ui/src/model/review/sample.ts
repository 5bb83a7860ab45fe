// Patches for the tests, as git writes them.

import { type FilePatch, parsePatch } from "./patch.ts";

export function textPatch(path: string, hunks: string, ids = "1111111..2222222"): string {
  return `diff --git a/${path} b/${path}\nindex ${ids} 100644\n--- a/${path}\n+++ b/${path}\n${hunks.trim()}\n`;
}

export function newFile(path: string, lines: readonly string[], id = "3333333"): string {
  const body = lines.map((line) => `+${line}`).join("\n");
  return `diff --git a/${path} b/${path}\nnew file mode 100644\nindex 0000000..${id}\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1,${lines.length} @@\n${body}\n`;
}

export function goneFile(path: string, lines: readonly string[], id = "4444444"): string {
  const body = lines.map((line) => `-${line}`).join("\n");
  return `diff --git a/${path} b/${path}\ndeleted file mode 100644\nindex ${id}..0000000\n--- a/${path}\n+++ /dev/null\n@@ -1,${lines.length} +0,0 @@\n${body}\n`;
}

export const BUCKET = `
@@ -18,7 +18,8 @@ class TokenBucket
     def __init__(self, rate, burst):
         self.rate = rate
         self.burst = burst
-        self._tokens = burst
-        self._updated = time.time()
+        self._tokens = float(burst)
+        self._updated = time.monotonic()
+        self._lock = asyncio.Lock()
 
     def take(self):
@@ -40,2 +41,1 @@
 end
-last
`;

export function one(text: string): FilePatch {
  const [file] = parsePatch(text);
  if (!file) throw new Error("the patch holds no file");
  return file;
}
