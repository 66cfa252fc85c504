// The sender threads of one destination. Usually there is one, so that connections are reused. While there are several, each has a share of the
// destination's limit, and a unit goes to the one with the fewest, unless another has its messages already.

import { kindOf } from '../../destinations/kinds.ts'
import type { Destination } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import { LimitShares } from './limit-shares.ts'
import type { ReplaceableSender } from './replaceable-sender.ts'
import type { Spreadable } from './spread-policy.ts'

/** Where a unit is, and with which epoch of its share. */
interface Given {
  sender: ReplaceableSender
  epoch: number
}

/** The epoch of units that were given before there were shares. */
const BEFORE = -1

/**
 * Whether several threads may send to a destination. Not if messages are sent in batches, which may be of several loads; if they are transformed, which
 * is done by threads of the sender; if it has an access token, which a sender renews for itself, and which a new one may replace; or if its kind
 * carries out deliveries with state of its own.
 */
export function maySpread(destination: Destination): boolean {
  const kind = kindOf(destination)
  if (kind.place !== 'thread' || kind.carrier !== null || destination.batch.size > 1) return false
  return kind.transformation(destination) === null && kind.requests.credentials(destination).auth?.type !== 'oauth2'
}

export class DestinationSenders implements Spreadable<ReplaceableSender> {
  /** Those that get units. */
  senders: readonly ReplaceableSender[]
  units = 0
  readonly #id: string
  #destination: Destination
  #limit = 1
  /** Null while one sender has all units. */
  #shares: LimitShares<ReplaceableSender> | null = null
  /** The units that senders count as in flight or waiting. Only while there are shares. */
  readonly #given = new Map<Work, Given>()

  constructor(destination: Destination, sender: ReplaceableSender) {
    this.#id = destination.id
    this.#destination = destination
    this.senders = [sender]
    sender.destinations++
  }

  get widest(): number {
    return maySpread(this.#destination) ? this.#limit : 1
  }

  start(work: Work): void {
    // A test goes out beside the others.
    if (work.limit === Number.POSITIVE_INFINITY) return this.#first.start(work)
    this.units++
    this.#limit = work.limit
    if (this.#destination !== work.destination) this.#changed(work.destination)
    const shares = this.#shares
    if (shares === null) return this.#first.start(work)
    shares.setLimit(work.limit)
    const sender = this.#holderOf(work, shares) ?? shares.next ?? this.#first
    this.#given.set(work, { sender, epoch: shares.started(sender) })
    sender.start(work)
  }

  add(sender: ReplaceableSender): void {
    const shares = this.#shares ?? this.#divide()
    if (!shares.senders.includes(sender)) sender.destinations++
    this.senders = [...this.senders, sender]
    shares.add(sender)
  }

  remove(sender: ReplaceableSender): void {
    if (this.senders.length === 1 || !this.senders.includes(sender)) return
    this.senders = this.senders.filter((each) => each !== sender)
    if (this.#shares?.leave(sender) === true) this.#left(sender)
  }

  /** See ReplaceableOptions.onOutcome. */
  answered(work: Work, outcome: Outcome | null, isLast: boolean): void {
    const given = this.#given.get(work)
    // A sender counts a unit that one URL has accepted as ended.
    if (given === undefined || (!isLast && outcome?.verdict !== 'success')) return
    this.#given.delete(work)
    const hasBegun = outcome?.reason !== 'aborted' && outcome?.reason !== 'sender_lost'
    if (this.#shares?.ended(given.sender, given.epoch, hasBegun) === true) this.#left(given.sender)
  }

  tell(command: 'recall' | 'resume'): void {
    for (const sender of this.#all) sender.tell(this.#id, command)
  }

  forget(): void {
    for (const sender of this.#all) sender.forget(this.#id)
    this.#shares = null
    this.#given.clear()
  }

  get #first(): ReplaceableSender {
    return this.senders[0] as ReplaceableSender
  }

  /** Also those that get no more units, but have some. */
  get #all(): readonly ReplaceableSender[] {
    return this.#shares?.senders ?? this.senders
  }

  /** With other settings, it may have to stay in one thread. What waits under the old ones is recalled by the lane, or by each sender. */
  #changed(destination: Destination): void {
    this.#destination = destination
    if (this.senders.length > 1 && !maySpread(destination)) for (const sender of this.senders.slice(1)) this.remove(sender)
  }

  /** Begins to divide the limit. All units so far are in one sender. */
  #divide(): LimitShares<ReplaceableSender> {
    const shares = new LimitShares<ReplaceableSender>(this.#limit, {
      tell: (sender, limit) => sender.setLimit(this.#id, limit),
      recall: (sender) => sender.tell(this.#id, 'recall'),
    })
    const works = this.#first.worksOf(this.#id)
    for (const work of works) this.#given.set(work, { sender: this.#first, epoch: BEFORE })
    shares.add(this.#first, works.length)
    this.#shares = shares
    return shares
  }

  /** A sender has no unit of this destination left. */
  #left(sender: ReplaceableSender): void {
    sender.forget(this.#id)
    if (this.#all.length > 1) return
    this.#first.setLimit(this.#id, null)
    this.#shares = null
    this.#given.clear()
  }

  /** The sender that has the messages of this work, if it gets units. A batch that was sent before the settings changed may have several loads. */
  #holderOf({ messages: [first] }: Work, shares: LimitShares<ReplaceableSender>): ReplaceableSender | undefined {
    if (first === undefined || first.content.loaded === null) return undefined
    return this.senders.find((sender) => sender.holds(first.content) && shares.mayTake(sender))
  }
}
