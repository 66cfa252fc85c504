// Loaded into the service process before anything else (--import). When the demo process ends, for whatever reason, the IPC channel
// between the two closes; the service then shuts down as on SIGTERM and deletes the temporary folder, which `?remove=` names.

import { rmSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const GRACE_MS = 12_000

// The worker threads of the store load this file too.
if (isMainThread) {
  const folder = new URL(import.meta.url).searchParams.get('remove')
  process.once('disconnect', () => {
    if (folder !== null) process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    setTimeout(() => process.exit(1), GRACE_MS).unref()
    process.kill(process.pid, 'SIGTERM')
  })
  // A listener for `disconnect` would otherwise keep the process alive.
  process.channel?.unref()
}
