// Which subscriptions of an integration match a message. Routing asks whether any does; a sender runs those that do.

import type { JsonObject } from '@switchyard/protocol'
import type { IntegrationDestination, Subscription } from '../../model/configuration.ts'
import type { SegmentContent } from '../../model/messages.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import type { FilterJudge } from '../port/kind.ts'
import { subscribeJudge } from '../subscribe/subscribe-judge.ts'

const compiledOf = oncePerObject((subscriptions: readonly Subscription[]) =>
  subscriptions.filter(({ enabled }) => enabled).map(({ id, subscribe }) => ({ id, matches: subscribeJudge(subscribe) })),
)

/** The ids of the enabled subscriptions that match, in order. */
export function matchingSubscriptions(subscriptions: readonly Subscription[], item: JsonObject, content: SegmentContent): string[] {
  return compiledOf(subscriptions).flatMap(({ id, matches }) => (matches(item, content) ? [id] : []))
}

/** An integration ignores a message without a matching subscription, except deletion requests if it can delete users. */
export function subscriptionsJudge({ integration, subscriptions }: IntegrationDestination): FilterJudge {
  const all = compiledOf(subscriptions)
  return (item, content) => {
    if (item['type'] === 'delete' && integration.deletes === true) return null
    return all.some(({ matches }) => matches(item, content)) ? null : 'no_subscription'
  }
}
