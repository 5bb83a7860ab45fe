import react from "@vitejs/plugin-react";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";

/** The server that `make dev` speaks to: the one on the usual port, if the environment names no other. */
const { AGENTCANVAS_SERVER: SERVER = "http://127.0.0.1:7717" } = loadEnv("", ".", "AGENTCANVAS_");

const SHEETS = decodeURIComponent(new URL("src/parts/sheets.ts", import.meta.url).pathname);

// hatch_build.py says where the page goes.
export default defineConfig({
  plugins: [react()],
  // The content policy lets no <style> element in; see there.
  resolve: { alias: { "react-style-singleton": SHEETS } },
  build: {
    target: "es2023",
    // A data: address would need a wider content policy than 'self'.
    assetsInlineLimit: 0,
  },
  worker: { format: "es" },
  server: {
    host: "127.0.0.1",
    port: 5173,
    // A change must come from the server's own origin; the cookie of its link is the same for every port.
    proxy: { "/api": { target: SERVER, changeOrigin: true, headers: { origin: SERVER } } },
  },
  test: { include: ["src/**/*.test.ts"] },
});
