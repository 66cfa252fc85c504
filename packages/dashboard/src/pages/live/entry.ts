// What a row of the list says, in words. Pure.

import { duration } from '../../text/format.ts'
import type { Told } from './feed.ts'

export type Tone = 'accepted' | 'delivered' | 'retried' | 'failed' | 'quiet'

export interface Outcome {
  word: string
  tone: Tone
  /** What else there is to say, shortly: a status, a reason, a code. */
  more: string
}

export function outcomeOf(told: Told): Outcome {
  switch (told.kind) {
    case 'accepted':
      return told.duplicate ? { word: 'duplicate', tone: 'quiet', more: 'dropped' } : { word: 'accepted', tone: 'accepted', more: '' }
    case 'rejected':
      return { word: 'rejected', tone: 'failed', more: told.code }
    case 'gap':
      return { word: 'gap', tone: 'quiet', more: '' }
    case 'attempt': {
      const { verdict, reason, status, totalMs, attempt, replay } = told
      const remarks = [attempt > 1 ? `attempt ${attempt}` : '', replay ? 'replay' : ''].filter((each) => each !== '')
      const more = [verdict === 'success' ? `${status ?? ''} in ${duration(totalMs)}`.trim() : (reason ?? ''), ...remarks].join(', ')
      if (verdict === 'success') return { word: 'delivered', tone: 'delivered', more }
      return verdict === 'temporary' ? { word: 'will retry', tone: 'retried', more } : { word: 'failed', tone: 'failed', more }
    }
  }
}

/** What it is about: the event, or the name of a page or screen, where it has one; what was refused begins as it does. */
export function subjectOf(told: Told): string {
  switch (told.kind) {
    case 'gap':
      return 'Nothing was heard'
    case 'rejected':
      return told.messages > 1 ? `${told.messages} messages` : told.sample.slice(0, 200)
    case 'accepted': {
      const name = told.message?.['name']
      return told.event ?? (typeof name === 'string' ? name : '')
    }
    case 'attempt':
      return told.messages > 1 ? `${told.event ?? told.type ?? 'a message'} and ${told.messages - 1} more` : (told.event ?? '')
  }
}

export function userOf(told: Told): string {
  return told.kind === 'accepted' || told.kind === 'attempt' ? (told.userId ?? told.anonymousId ?? '') : ''
}

export function typeOf(told: Told): string {
  return told.kind === 'accepted' || told.kind === 'attempt' ? (told.type ?? '') : ''
}

/** `12`, `0.4`: a rate by the second. */
export function rate(perSecond: number): number {
  return perSecond >= 10 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10
}
