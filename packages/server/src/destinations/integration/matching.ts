// Which subscriptions of an integration match a message. Routing asks whether any does; a sender runs those that do.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent, Subscription } from '../../store/port/model.ts'
import { type SubscribeJudge, subscribeJudge } from '../subscribe/subscribe-judge.ts'

interface Compiled {
  id: string
  matches: SubscribeJudge
}

// Subscriptions are replaced as a whole and never changed.
const compiled = new WeakMap<readonly Subscription[], readonly Compiled[]>()

/** The ids of the enabled subscriptions that match, in order. */
export function matchingSubscriptions(subscriptions: readonly Subscription[], item: JsonObject, content: SegmentContent): string[] {
  return compiledOf(subscriptions).flatMap(({ id, matches }) => (matches(item, content) ? [id] : []))
}

export function hasMatchingSubscription(subscriptions: readonly Subscription[], item: JsonObject, content: SegmentContent): boolean {
  return compiledOf(subscriptions).some(({ matches }) => matches(item, content))
}

function compiledOf(subscriptions: readonly Subscription[]): readonly Compiled[] {
  let known = compiled.get(subscriptions)
  if (known === undefined) {
    known = subscriptions.filter(({ enabled }) => enabled).map(({ id, subscribe }) => ({ id, matches: subscribeJudge(subscribe) }))
    compiled.set(subscriptions, known)
  }
  return known
}
