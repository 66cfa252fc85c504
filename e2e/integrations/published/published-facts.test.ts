// The requests of integrations, created as a user creates them, are those that the tests of Segment's definitions publish.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSeen } from '../seen/seen-actions.ts'
import { checkFacts } from './check-facts.ts'
import { ADVERTISING_AND_LOYALTY } from './facts/advertising-and-loyalty.ts'
import { ENGAGEMENT } from './facts/engagement.ts'
import { MESSAGING } from './facts/messaging.ts'
import { PRODUCT_ANALYTICS } from './facts/product-analytics.ts'
import { SALES } from './facts/sales.ts'
import { USAGE_AND_EXPERIMENTS } from './facts/usage-and-experiments.ts'

const FACTS = [...PRODUCT_ANALYTICS, ...USAGE_AND_EXPERIMENTS, ...ENGAGEMENT, ...MESSAGING, ...SALES, ...ADVERTISING_AND_LOYALTY]

test('destinations with the defaults of the form make the published requests', async (t) => {
  const checked = await checkFacts(FACTS)
  const integrations = new Set(FACTS.map(({ integration }) => integration))
  t.diagnostic(`${FACTS.length} facts about ${integrations.size} integrations`)
  const differing = checked.filter(({ differences }) => differences.length > 0)
  assert.deepEqual(
    differing.map(({ fact: { integration, action }, differences }) => ({ integration, action: action ?? 'presets', differences })),
    [],
  )
  const seen = new Map<string, string[]>()
  for (const { fact, actions } of checked) seen.set(fact.integration, [...(seen.get(fact.integration) ?? []), ...actions])
  checkSeen('published', seen)
})
