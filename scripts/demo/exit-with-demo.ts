// Loaded into the service's process before anything else (--import): when the demo's own process is gone, however it went, the channel
// between them closes. Then the service ends as on SIGTERM, and takes the temporary folder with it. `?remove=` names that folder.

import { rmSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const GRACE_MS = 12_000

// The store's threads load it, too.
if (isMainThread) {
  const folder = new URL(import.meta.url).searchParams.get('remove')
  process.once('disconnect', () => {
    if (folder !== null) process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    setTimeout(() => process.exit(1), GRACE_MS).unref()
    process.kill(process.pid, 'SIGTERM')
  })
  // Listening to it alone would keep the process alive.
  process.channel?.unref()
}
