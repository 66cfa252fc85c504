// The only client of the process. It is stored on globalThis because Next.js bundles instrumentation and routes separately, and in
// development reloads a module whenever it changes: each copy would create its own client with its own queue.

import { Analytics } from '@switchyard/node'

const kept = globalThis as { analytics?: Analytics }

kept.analytics ??= new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // With its own folder, a process that was killed sends its queued messages when it starts again. Not for serverless platforms.
  ...(process.env['SPOOL_DIR'] ? { spool: { dir: process.env['SPOOL_DIR'] } } : {}),
})

export const analytics = kept.analytics
