// The texts of a row in the list. Pure.

import { duration } from '../../text/format.ts'
import { reasonSentence } from '../../text/reasons.ts'
import { rejectionSentence } from '../../text/rejections.ts'
import type { LiveItem } from './feed.ts'

export type Tone = 'accepted' | 'delivered' | 'retried' | 'failed' | 'quiet'

export interface Outcome {
  word: string
  tone: Tone
  /** A status and a duration, or why the attempt failed. The number of the attempt comes before the cause, whose end may be cut off. */
  more: string
}

export function outcomeOf(item: LiveItem): Outcome {
  switch (item.kind) {
    case 'accepted':
      return item.duplicate ? { word: 'duplicate', tone: 'quiet', more: 'ignored' } : { word: 'accepted', tone: 'accepted', more: '' }
    case 'rejected':
      return { word: 'rejected', tone: 'failed', more: rejectionSentence(item.code) }
    case 'gap':
      return { word: 'gap', tone: 'quiet', more: '' }
    case 'attempt': {
      const { verdict, reason, status, totalMs, attempt, replay } = item
      const remarks = [attempt > 1 ? `attempt ${attempt}` : '', replay ? 'replay' : ''].filter((each) => each !== '')
      if (verdict === 'success') {
        const more = [`${status ?? ''} in ${duration(totalMs)}`.trim(), ...remarks].join(', ')
        return { word: 'delivered', tone: 'delivered', more }
      }
      const cause = reason === null ? '' : reasonSentence(reason)
      const more = [remarks.join(', '), cause].filter((each) => each !== '').join(': ')
      return verdict === 'temporary' ? { word: 'will retry', tone: 'retried', more } : { word: 'failed', tone: 'failed', more }
    }
  }
}

/** What the row is about: the event or the name of a page or screen; for a rejected call, the start of its body. */
export function subjectOf(item: LiveItem): string {
  switch (item.kind) {
    case 'gap':
      return 'Disconnected'
    case 'rejected':
      return item.messages > 1 ? `${item.messages} messages` : item.sample.slice(0, 200)
    case 'accepted': {
      const name = item.message?.['name']
      return item.event ?? (typeof name === 'string' ? name : '')
    }
    case 'attempt':
      return item.messages > 1 ? `${item.event ?? item.type ?? 'a message'} and ${item.messages - 1} more` : (item.event ?? '')
  }
}

export function userOf(item: LiveItem): string {
  return item.kind === 'accepted' || item.kind === 'attempt' ? (item.userId ?? item.anonymousId ?? '') : ''
}

export function typeOf(item: LiveItem): string {
  return item.kind === 'accepted' || item.kind === 'attempt' ? (item.type ?? '') : ''
}

/** Rounds a rate per second: `12`, `0.4`. */
export function rate(perSecond: number): number {
  return perSecond >= 10 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10
}
