// Preloaded into a node (--import), in every thread of it: ends or blocks a thread on request, because signals cannot reach a single thread.
// It listens on a port of 127.0.0.1, which it announces in the log. A request is one line, and its answer comes when the thread has ended.
//
//   kill switchyard-sender 7   ends one of the threads whose names start like this: the one with this index, modulo their number
//   block switchyard-sender 7  makes it hang, until the node replaces it
//
// Worker threads start threads of their own (a sender starts those for transformations), so each of them reports what it starts.

import { syncBuiltinESMExports } from 'node:module'
import { createServer, type Socket } from 'node:net'
import workerThreads, { BroadcastChannel, isMainThread, threadId, type Worker, type WorkerOptions } from 'node:worker_threads'

/** Between the threads of this process. */
type Note = { started: number; name: string } | { ended: number } | { kill: number } | { block: number }

const REPEAT_MS = 1_000

const own = new Map<number, Worker>()
const channel = new BroadcastChannel('thread-control')
;(channel as unknown as { unref(): void }).unref()

workerThreads.Worker = class extends workerThreads.Worker {
  constructor(program: string | URL, options: WorkerOptions = {}) {
    super(program, options)
    const id = this.threadId
    own.set(id, this)
    tell({ started: id, name: options.name ?? '' })
    this.on('exit', () => {
      own.delete(id)
      tell({ ended: id })
    })
  }
}
syncBuiltinESMExports()

const threads = new Map<number, string>()
const waiting = new Map<number, () => void>()

channel.onmessage = ({ data }) => heard(data as Note)

/** A channel does not give a thread its own notes. */
function tell(note: Note): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel between threads has no origin
  channel.postMessage(note)
  heard(note)
}

function heard(note: Note): void {
  if ('kill' in note) void own.get(note.kill)?.terminate()
  else if ('block' in note) {
    if (note.block === threadId) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  } else if ('started' in note) threads.set(note.started, note.name)
  else {
    threads.delete(note.ended)
    waiting.get(note.ended)?.()
    waiting.delete(note.ended)
  }
}

if (isMainThread) {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.setEncoding('utf8').once('data', (line: string) => {
      const [act, name = '', nth] = line.trim().split(' ')
      const found = [...threads].filter(([, each]) => each.startsWith(name))
      const chosen = found[Number(nth) % found.length]
      if (chosen === undefined) return socket.end('none')
      const [id, full] = chosen
      const request = (): void => tell(act === 'block' ? { block: id } : { kill: id })
      // A thread that was just started does not listen yet.
      const repeated = setInterval(request, REPEAT_MS).unref()
      waiting.set(id, () => {
        clearInterval(repeated)
        socket.end(full)
      })
      request()
    })
  })
  server.unref()
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number }
    process.stderr.write(
      `${JSON.stringify({ level: 'info', time: new Date().toISOString(), msg: `threads can be ended at port ${port}` })}\n`,
    )
  })
}
