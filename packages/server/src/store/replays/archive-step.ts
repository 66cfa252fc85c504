// A step of a job with messages from the archive of a lake. The runner has read them; this stores them and their deliveries, and the place in the archive
// after them, in one transaction. So a message is neither lost nor replayed twice, whenever the process is killed.

import type { JsonObject } from '@switchyard/protocol'
import type { ArchivedMessage, ArchiveStep, ReplayStep, RowId } from '../store.ts'
import { MESSAGES_PER_SHIPMENT, ReplayBudget } from './replay-budget.ts'
import { archiveProgress, progressOf, type ReplayJobRow, replayDoc, replayDocText, replayJobOf } from './replay-job-row.ts'
import type { OwedAgain, ReplayRows, StepReply } from './replay-rows.ts'

interface Step extends ReplayStep {
  archive: ArchiveStep
}

interface Sent extends ArchivedMessage {
  text: string
  item: JsonObject
}

export async function makeArchiveStep<Id extends RowId>(
  rows: ReplayRows<Id>,
  job: ReplayJobRow<Id>,
  { archive, limit, maxWaiting, runner }: Step,
  nowMs: () => number,
): Promise<StepReply> {
  const doc = replayDoc(job)
  const before = archiveProgress(doc)
  // Another runner led the job since these messages were read.
  if (before === null || before.cursor !== archive.from) return { ok: false, reason: 'moved' }
  const atMs = Math.floor(nowMs())
  const budget = new ReplayBudget<Id>(limit)
  const progress = progressOf(job, budget, false, atMs)
  if ('problem' in archive) {
    await rows.saveDoc(job.num, replayDocText({ ...doc, archive: { ...before, problem: archive.problem } }))
    const paused = await rows.saveJob(job, archive.pause ? { ...progress, state: 'paused' } : progress, runner)
    return { ok: true, job: replayJobOf(paused), replayed: 0, blocked: true, destinationIds: [] }
  }
  const [part] = await rows.parts(job.num)
  const [to] = part?.destination == null ? [] : await rows.destinations([part.destination])
  const isGone = part === undefined || to === undefined || to.deleted
  const room = isGone || part.held ? 0 : Math.max(0, Math.min(budget.limit, maxWaiting - part.waiting))
  const { sent, used } = isGone ? { sent: [], used: [] } : await choose(rows, archive.messages, room, budget)
  budget.replayed = sent.length
  const isOver = isGone || (archive.next === null && used.length === archive.messages.length)
  const last = used.at(-1)
  const cursor = used.length === archive.messages.length ? archive.next : (last?.cursor ?? before.cursor)
  const shipments = isGone ? [] : await store(rows, sent, part.destination as Id)
  if (shipments.length > 0) await rows.owe(shipments, job.num, atMs)
  if (part !== undefined) await rows.saveParts(job, [{ ...part, over: isOver, owed: sent.length }])
  const reachedMs = last?.receivedAtMs ?? before.reachedMs
  await rows.saveDoc(job.num, replayDocText({ ...doc, archive: { cursor, reachedMs, problem: null } }))
  const saved = await rows.saveJob(job, progressAfter(job, budget, { isOver, isGone, atMs }), runner)
  const isBlocked = used.length < archive.messages.length && sent.length === room && room < budget.limit
  return {
    ok: true,
    job: replayJobOf(saved),
    replayed: sent.length,
    blocked: !isOver && (isBlocked || part.held),
    destinationIds: shipments.length > 0 && to !== undefined ? [to.id] : [],
  }
}

/** How many messages there are was an estimate until now. */
function progressAfter<Id extends RowId>(
  job: ReplayJobRow<Id>,
  budget: ReplayBudget<Id>,
  { isOver, isGone, atMs }: { isOver: boolean; isGone: boolean; atMs: number },
) {
  const progress = progressOf(job, budget, false, atMs)
  if (!isOver) return progress
  const skipped = JSON.parse(progress.skipped) as Record<string, number>
  const done = progress.replayed + Object.values(skipped).reduce((sum, count) => sum + count, 0)
  const left = Math.max(0, progress.total - done)
  if (isGone && left > 0) skipped['destination_gone'] = (skipped['destination_gone'] ?? 0) + left
  return {
    ...progress,
    skipped: JSON.stringify(skipped),
    total: isGone ? progress.total : done,
    state: 'finished' as const,
    finishedAtMs: atMs,
  }
}

/** The messages that are sent, as many as there is room for, and all that this step is done with. */
async function choose<Id extends RowId>(
  rows: ReplayRows<Id>,
  messages: readonly ArchivedMessage[],
  room: number,
  budget: ReplayBudget<Id>,
): Promise<{ sent: (Sent & { source: Id })[]; used: ArchivedMessage[] }> {
  const parsed = messages.map((message) => (message.text === null ? null : (JSON.parse(message.text) as JsonObject)))
  const sources = new Map((await rows.sources([...new Set(messages.map(({ sourceId }) => sourceId))])).map(({ id, num }) => [id, num]))
  const isDeleted = await deletions(rows, messages, parsed)
  const sent: (Sent & { source: Id })[] = []
  const used: ArchivedMessage[] = []
  for (const [at, message] of messages.entries()) {
    const item = parsed[at] ?? null
    const source = sources.get(message.sourceId)
    if (item === null || message.text === null || source === undefined) budget.skip(message.skip ?? 'message_gone')
    else if (isDeleted(source, message.receivedAtMs, item)) budget.skip('user_deleted')
    else if (sent.length >= room) break
    else sent.push({ ...message, text: message.text, item, source })
    used.push(message)
  }
  return { sent, used }
}

/** Whether the user of a message was deleted after it was received. The lake may not have removed it yet. */
async function deletions<Id extends RowId>(
  rows: ReplayRows<Id>,
  messages: readonly ArchivedMessage[],
  items: readonly (JsonObject | null)[],
): Promise<(source: Id, receivedAtMs: number, item: JsonObject) => boolean> {
  const users = new Set<string>()
  for (const item of items)
    for (const id of [item?.['userId'] as unknown, item?.['previousId'] as unknown]) if (typeof id === 'string') users.add(id)
  if (users.size === 0 || !(await rows.hasDeletions())) return () => false
  const oldestMs = messages.reduce((oldest, { receivedAtMs }) => Math.min(oldest, receivedAtMs), Number.POSITIVE_INFINITY)
  const deleted = new Map<string, number>()
  for (const { userId, source, atMs } of await rows.deletedUsers([...users], oldestMs)) {
    const key = `${source} ${userId}`
    deleted.set(key, Math.max(atMs, deleted.get(key) ?? 0))
  }
  const isAfter = (source: Id, userId: unknown, receivedAtMs: number): boolean =>
    typeof userId === 'string' && (deleted.get(`${source} ${userId}`) ?? 0) >= receivedAtMs
  return (source, receivedAtMs, item) => isAfter(source, item['userId'], receivedAtMs) || isAfter(source, item['previousId'], receivedAtMs)
}

/** Messages that were received together, as in one request, become one segment. */
async function store<Id extends RowId>(
  rows: ReplayRows<Id>,
  sent: readonly (Sent & { source: Id })[],
  destination: Id,
): Promise<OwedAgain<Id>[]> {
  const shipments: OwedAgain<Id>[] = []
  for (let at = 0; at < sent.length; ) {
    const { sourceId, source, receivedAtMs } = sent[at] as Sent & { source: Id }
    const items: JsonObject[] = []
    for (let each = sent[at]; items.length < MESSAGES_PER_SHIPMENT; each = sent[++at]) {
      if (each === undefined || each.sourceId !== sourceId || each.receivedAtMs !== receivedAtMs) break
      items.push(each.item)
    }
    const { seq, bytes } = await rows.addSegment({ sourceId, source, receivedAtMs, items })
    const entries = items.map((_, index) => ({ index, replayOf: null }))
    shipments.push({ destination, segment: seq, bytes, entries, isArchived: true })
  }
  return shipments
}
