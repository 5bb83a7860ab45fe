import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// hatch_build.py says where the page goes; `npm run dev` speaks to a server on its usual port.
export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2023",
    // A data: address would need a wider content policy than 'self'.
    assetsInlineLimit: 0,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:7717" } },
  test: { include: ["src/**/*.test.ts"] },
});
