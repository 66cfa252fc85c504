// The sender, in a separate process: prebuilt requests over plain keep-alive sockets. Each connection sends its next
// request when the last was answered; or, with a rate, one request at a time is sent at random intervals. Only 200 is a success.

import { connect, type Socket } from 'node:net'
import { buildTemplate, stampIds, stampUsers, type Target, type Template } from './events.ts'
import { frame, nowMs } from './http-message.ts'

export interface Job {
  target: Target
  connections: number
  eventsPerRequest: number
  /** The number of the first event; the others follow. */
  first: number
  /** How many events to send, a multiple of `eventsPerRequest`. */
  events: number
  /** Stops after this long even if events are left. */
  durationMs?: number
  /** If missing, requests are sent as fast as they are answered. */
  requestsPerSecond?: number
  /** The events are of so many users; of a few random ones if missing. */
  users?: number
}

export interface Sent {
  kind: 'sent'
  startedAtMs: number
  lastAnswerAtMs: number
  acknowledged: number
  /** Requests that were answered with another status, or not for the whole batch. */
  refused: number
  refusals: Record<string, number>
  /** Bytes of the bodies of acknowledged requests. */
  bodyBytes: number
  /** How long each answer took; only with a duration. */
  answersMs?: Float64Array
  /** Per request, in the order of sending; only with a rate. */
  sentAtMs?: Float64Array
  ackedAtMs?: Float64Array
}

export type LoadReport = { kind: 'ready' } | Sent | { kind: 'failed'; message: string }

interface Connection {
  socket: Socket
  rest: Buffer | undefined
  onAnswer: (status: number, body: string) => void
}

/** Enough templates that stored pages differ from each other. */
const TEMPLATES = 32
const REFUSED_PAUSE_MS = 50

process.on('message', (job: Job) => {
  void run(job).then(report, (error: Error) => report({ kind: 'failed', message: error.message }))
})
process.on('disconnect', () => process.exit())
report({ kind: 'ready' })

async function run(job: Job): Promise<Sent> {
  let fail: (error: Error) => void = () => {}
  const failure = new Promise<never>((_resolve, reject) => (fail = reject))
  const connections = await Promise.all(Array.from({ length: job.connections }, (_, nth) => open(portFor(job.target, nth), fail)))
  const sent: Sent = { kind: 'sent', startedAtMs: 0, lastAnswerAtMs: 0, acknowledged: 0, refused: 0, refusals: {}, bodyBytes: 0 }
  const count = Math.min(Math.max(TEMPLATES, job.connections), Math.ceil(job.events / job.eventsPerRequest))
  const templates = Array.from({ length: count }, (_, seed) => buildTemplate(job.target, job.eventsPerRequest, seed))
  try {
    const work = job.requestsPerSecond === undefined ? flood(job, connections, templates, sent) : pace(job, connections, templates, sent)
    await Promise.race([work, failure])
  } finally {
    for (const { socket } of connections) socket.destroy()
  }
  return sent
}

function portFor(target: Target, nth: number): Target {
  const { ports = [target.port] } = target
  return { ...target, port: ports[nth % ports.length] ?? target.port }
}

async function flood(job: Job, connections: Connection[], templates: Template[], sent: Sent): Promise<void> {
  let next = job.first
  const end = job.first + job.events
  sent.startedAtMs = nowMs()
  const deadline = sent.startedAtMs + (job.durationMs ?? Number.POSITIVE_INFINITY)
  const answersMs: number[] = []
  await Promise.all(
    connections.map(async (connection) => {
      while (next < end && nowMs() < deadline) {
        const first = next
        next += job.eventsPerRequest
        // A template in use is removed from the list, because a socket may still hold bytes that writing new ids would change.
        const template = templates.pop()
        if (!template) throw new Error('more connections than templates')
        const sentAtMs = nowMs()
        const isTaken = await send(connection, template, first, sent, job.users)
        if (job.durationMs !== undefined) answersMs.push(nowMs() - sentAtMs)
        templates.unshift(template)
        if (!isTaken) await pause(REFUSED_PAUSE_MS)
      }
    }),
  )
  if (job.durationMs !== undefined) sent.answersMs = Float64Array.from(answersMs)
}

async function pace(job: Job, connections: Connection[], templates: Template[], sent: Sent): Promise<void> {
  const requests = job.events / job.eventsPerRequest
  const sentAtMs = new Float64Array(requests)
  const ackedAtMs = new Float64Array(requests)
  const meanMs = 1_000 / (job.requestsPerSecond ?? 1)
  sent.startedAtMs = nowMs()
  let due = sent.startedAtMs
  const busy = new Set<Promise<void>>()
  for (let index = 0; index < requests; index += 1) {
    // Random intervals, so that no timer of the program under test can synchronize with the traffic.
    due += meanMs * (0.5 + Math.random())
    await pause(due - nowMs())
    // Taken before waiting for a connection: if all are busy, the program is late and that must count.
    sentAtMs[index] = nowMs()
    while (connections.length === 0) await Promise.race(busy)
    const connection = connections.pop()
    const template = templates.pop()
    if (!connection || !template) throw new Error('more connections than templates')
    const answer = send(connection, template, job.first + index * job.eventsPerRequest, sent).then((isTaken) => {
      if (isTaken) ackedAtMs[index] = sent.lastAnswerAtMs
      connections.unshift(connection)
      templates.unshift(template)
      busy.delete(answer)
    })
    busy.add(answer)
  }
  await Promise.all(busy)
  sent.sentAtMs = sentAtMs
  sent.ackedAtMs = ackedAtMs
}

function send(connection: Connection, template: Template, first: number, sent: Sent, users?: number): Promise<boolean> {
  stampIds(template, first)
  if (users !== undefined) stampUsers(template, first, users)
  return new Promise((resolve) => {
    connection.onAnswer = (status, body) => {
      sent.lastAnswerAtMs = nowMs()
      const isTaken = status === 200 && !body.includes('"rejected"')
      if (isTaken) {
        sent.acknowledged += template.idOffsets.length
        sent.bodyBytes += template.bodyBytes
      } else {
        sent.refused += template.idOffsets.length
        const what = `${status} ${body.slice(0, 200)}`
        sent.refusals[what] = (sent.refusals[what] ?? 0) + 1
      }
      resolve(isTaken)
    }
    connection.socket.write(template.bytes)
  })
}

async function open({ host, port }: Target, onFailure: (error: Error) => void): Promise<Connection> {
  const socket = connect({ host, port, noDelay: true })
  const connection: Connection = { socket, rest: undefined, onAnswer: () => {} }
  socket.on('data', (chunk: Buffer) => {
    const buffer = connection.rest ? Buffer.concat([connection.rest, chunk]) : chunk
    const message = frame(buffer, 0)
    connection.rest = message ? undefined : buffer
    if (message) connection.onAnswer(Number(buffer.toString('latin1', 9, 12)), buffer.toString('latin1', message.bodyStart, message.end))
  })
  socket.on('end', () => onFailure(new Error('the program closed a connection')))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.on('error', (error) => {
      reject(error)
      onFailure(error)
    })
  })
  return connection
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}

function report(message: LoadReport): void {
  process.send?.(message)
}
