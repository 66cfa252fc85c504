// Whether deliveries can be sent again, and which of a message's deliveries speaks for all: for many at once, in a few
// questions. Asked inside the transaction that acts on the answers, which keeps what was found from being taken away before
// its commit: a destination's row is held against its deletion, and a segment's against being dropped.

import { unpackBody } from '../../encoding/body-bytes.ts'
import { readStoredBody } from '../../port/stored-messages.ts'
import type { Repeatable } from '../../replays/replay-budget.ts'
import { STANDS } from '../../replays/replay-job-row.ts'
import type { FinalStateName, ReplaySkipReason } from '../../store.ts'
import { rowAndIndex, SKEW } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'
import { finalsOf, type NamedDelivery } from './replay-origins.ts'

export interface ReplayCandidate extends NamedDelivery {
  state: FinalStateName
  /** By its id, and not by what became of it. */
  named: boolean
}

/** With what it took to read, which is the step's to answer for. Undefined: there was too much to read for one step. */
export type Verdict = { found: ReplaySkipReason | Pick<Repeatable<string>, 'newest'>; bytes: number } | undefined

interface SameMessage {
  standing: boolean
  of_job: boolean
  newest: string | null
  parent: string | null
}

/** Of stored bodies, read for one answer. The first is read whatever its size. */
const BYTES_AT_ONCE = 1024 * 1024

/** Of one transaction: what is read once is not read again. */
export class ReplayJudge {
  readonly #ask: Ask
  readonly #job: { num: string; bound: string }
  readonly #isLive = new Map<string, boolean>()
  /** Sizes of the segments that are held. Null: it is gone. */
  readonly #segments = new Map<string, number | null>()
  readonly #bodies = new Map<string, { bytes: number; has(index: number): boolean }>()
  #mayBePurged: boolean | undefined

  constructor(ask: Ask, job: { num: string; bound: string }) {
    this.#ask = ask
    this.#job = job
  }

  /** As stored. Of a segment that was found to be there. */
  bytesOf(segment: string): number {
    return this.#segments.get(segment) ?? 0
  }

  /**
   * Of the deliveries of one message to one destination, at most one is pending, and one that was delivered later speaks for
   * all before it. Where all have failed the newest is the one that is repeated, whichever of them was come upon first.
   */
  async judge(candidates: readonly ReplayCandidate[]): Promise<Verdict[]> {
    if (candidates.length === 0) return []
    await this.#lookAtDestinations(candidates.map(({ destination }) => destination))
    const same = await this.#sameMessages(candidates)
    const parents = await this.#parents(candidates, same)
    const verdicts = candidates.map((candidate, at): Verdict => {
      const { standing, of_job: ofJob, newest } = same[at] as SameMessage
      const { origin, destination, index } = candidate
      if (!this.#isLive.get(destination)) return { found: 'destination_gone', bytes: 0 }
      // However it has ended since: a job sends a message once.
      if (standing || ofJob) return { found: 'already_replayed', bytes: 0 }
      const parent = parents.get(`${origin}-${index}`)
      // Delivered once more though it had been before: to send all of those again is not what "all that was delivered" means.
      if (parent?.wasDelivered) return { found: 'already_replayed', bytes: parent.bytes }
      return { found: { newest: newest !== null && newest > origin ? newest : origin }, bytes: parent?.bytes ?? 0 }
    })
    const isOpen = (at: number): boolean => typeof verdicts[at]?.found === 'object'
    const segments = [...new Set(candidates.filter((_, at) => isOpen(at)).map(({ segment }) => segment))]
    await this.#hold(segments)
    const mayBePurged = await this.#readBodies(segments)
    return verdicts.map((verdict, at): Verdict => {
      if (!isOpen(at)) return verdict
      const { segment, index } = candidates[at] as ReplayCandidate
      const { found, bytes } = verdict as NonNullable<Verdict>
      if (this.#segments.get(segment) == null) return { found: 'message_gone', bytes }
      if (!mayBePurged) return verdict
      const body = this.#bodies.get(segment)
      return body && { found: body.has(index) ? found : 'message_gone', bytes: bytes + body.bytes }
    })
  }

  async #lookAtDestinations(all: readonly string[]): Promise<void> {
    const unknown = [...new Set(all)].filter((num) => !this.#isLive.has(num))
    if (unknown.length === 0) return
    for (const num of unknown) this.#isLive.set(num, false)
    // Whoever deletes one waits for this transaction, and then cancels what it has owed.
    const { rows } = await this.#ask<{ num: string; deleted: boolean }>(
      'SELECT num, deleted FROM destinations WHERE num = ANY($1::bigint[]) ORDER BY num FOR SHARE',
      [unknown],
    )
    for (const { num, deleted } of rows) this.#isLive.set(num, !deleted)
  }

  async #sameMessages(candidates: readonly ReplayCandidate[]): Promise<SameMessage[]> {
    const { rows } = await this.#ask<SameMessage>(SAME_MESSAGES, [
      candidates.map(({ segment }) => segment),
      candidates.map(({ index }) => index),
      candidates.map(({ destination }) => destination),
      candidates.map(({ origin }) => origin),
      this.#job.num,
      this.#job.bound,
    ])
    return rows
  }

  async #parents(
    candidates: readonly ReplayCandidate[],
    same: readonly SameMessage[],
  ): Promise<Map<string, { wasDelivered: boolean; bytes: number }>> {
    const parents = new Map<string, { row: string; index: number }>()
    for (const [at, { state, named, origin, index }] of candidates.entries()) {
      const parent = state === 'delivered' && !named ? rowAndIndex(same[at]?.parent ?? '') : undefined
      if (parent !== undefined) parents.set(`${origin}-${index}`, parent)
    }
    const finals = await finalsOf(this.#ask, [...new Set([...parents.values()].map(({ row }) => row))])
    const answers = new Map<string, { wasDelivered: boolean; bytes: number }>()
    for (const [id, { row, index }] of parents) {
      const own = finals.get(row)
      answers.set(id, { wasDelivered: own?.states.get(index) === 'delivered', bytes: own?.bytes ?? 0 })
      // Read once for all that repeat a delivery of the same origin.
      if (own) own.bytes = 0
    }
    return answers
  }

  /** Against being dropped until this transaction is over. Those that are not found are gone. */
  async #hold(segments: readonly string[]): Promise<void> {
    const unknown = segments.filter((segment) => !this.#segments.has(segment)).sort()
    if (unknown.length === 0) return
    for (const segment of unknown) this.#segments.set(segment, null)
    const { rows } = await this.#ask<{ seq: string; bytes: number }>(
      `SELECT seq, octet_length(body) AS bytes FROM segments
       WHERE seq = ANY($1::bigint[]) AND seq >= $2 AND seq <= $3 ORDER BY seq FOR KEY SHARE`,
      [unknown, unknown[0] as string, unknown.at(-1) as string],
    )
    for (const { seq, bytes } of rows) this.#segments.set(seq, bytes)
  }

  /** Whether bodies have to be asked: only where there are deletion requests, and no more than fits in a step. */
  async #readBodies(segments: readonly string[]): Promise<boolean> {
    this.#mayBePurged ??= (await this.#ask('SELECT 1 FROM deletions LIMIT 1')).rows.length > 0
    if (!this.#mayBePurged) return false
    const wanted: string[] = []
    let bytes = 0
    for (const segment of segments) {
      if (this.#bodies.has(segment) || this.#segments.get(segment) == null) continue
      if (bytes >= BYTES_AT_ONCE) break
      wanted.push(segment)
      bytes += this.bytesOf(segment)
    }
    for (const [segment, body] of await readBodies(this.#ask, wanted)) this.#bodies.set(segment, body)
    return true
  }
}

export interface StoredMessages {
  bytes: number
  /** Whether the message is there: neither a duplicate nor purged. */
  has(index: number): boolean
}

export async function readBodies(ask: Ask, segments: readonly string[]): Promise<Map<string, StoredMessages>> {
  const bodies = new Map<string, StoredMessages>()
  if (segments.length === 0) return bodies
  const { rows } = await ask<{ seq: string; absent: number[] | null; body: Buffer }>(
    'SELECT seq, absent, body FROM segments WHERE seq = ANY($1::bigint[])',
    [segments],
  )
  for (const { seq, absent, body } of rows) {
    const bytes = unpackBody(body)
    const about = { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null }
    const { items } = readStoredBody(bytes, about, absent ?? [])
    bodies.set(seq, { bytes: bytes.length, has: (index) => items[index] != null })
  }
  return bodies
}

// A replay of a message comes after the message was accepted, which says in what days to look. Each is asked by index, one
// candidate at a time: comparisons that no hash can make keep the planner from reading all replays there are.
const SAME = `FROM replays r WHERE r.segment = c.segment AND r.idx = c.idx AND r.destination = c.destination AND r.origin > c.segment - ${SKEW}`

const SAME_MESSAGES = {
  name: 'replay_same_messages',
  text: `
  SELECT
    EXISTS (SELECT 1 ${SAME} AND ${STANDS} AND r.origin <> c.origin AND (r.state IS DISTINCT FROM 'delivered' OR r.origin > c.origin)) AS standing,
    EXISTS (SELECT 1 ${SAME} AND r.origin > $6::bigint - ${SKEW} AND r.job = $5) AS of_job,
    (SELECT max(r.origin) ${SAME}) AS newest,
    (SELECT r.replay_of FROM replays r WHERE r.origin = c.origin AND r.idx = c.idx) AS parent
  FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS c (segment, idx, destination, origin, n)
  ORDER BY c.n`,
}
