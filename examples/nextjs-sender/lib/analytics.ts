// The one client of the process. It is kept on globalThis because Next.js bundles instrumentation and routes apart, and in
// development loads a module again whenever it changes: each of them would make a client, with a queue, of its own.

import { Analytics } from '@switchyard/node'

const kept = globalThis as { analytics?: Analytics }

kept.analytics ??= new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // With a folder of its own, a process that is killed sends what it had queued when it starts again. Not on serverless platforms.
  ...(process.env['SPOOL_DIR'] ? { spool: { dir: process.env['SPOOL_DIR'] } } : {}),
})

export const analytics = kept.analytics
