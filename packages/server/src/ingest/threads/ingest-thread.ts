// The program of an ingest thread.

import { parentPort, workerData } from 'node:worker_threads'
import type { ThreadStart } from './protocol.ts'
import { ThreadServer } from './thread-server.ts'

const port = parentPort
if (port === null) throw new Error('ingest-thread.ts must run as a worker thread')

new ThreadServer(workerData as ThreadStart, port).listen()
