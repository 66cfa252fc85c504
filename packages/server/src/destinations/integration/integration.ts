// An integration: for each message, the actions run whose subscriptions match it. They run in host processes, with the code of the package
// @switchyard/integrations.

import type { Destination } from '../../store/port/model.ts'
import type { DestinationKind } from '../kind.ts'
import { verdictsOf } from '../webhook/verdict.ts'
import { changedSecrets, fromStored, toStored, withoutSecrets, withSecrets } from './secrets.ts'

export const INTEGRATION = {
  type: 'integration',

  settings: {},
  shownSettings: {},
  withKeptSecrets: (settings) => settings,
  problem: () => null,
  show,
  showHidden: show,

  secretSettings: ['settings'],
  changedSecrets,
  secretHeaders: () => new Set(),
  toStored,
  fromStored,
  withSecrets,
  withoutSecrets,

  targets: ({ integration }: Destination) => [targetOf(integration?.slug ?? '')],
  steps: ({ subscriptions }: Destination) => subscriptions,
  shaper: () => null,
  request: () => {
    throw new Error('an integration builds its own requests')
  },
  verdicts: ({ retry }: Destination) => verdictsOf(retry),
} as const satisfies DestinationKind

/** Stands for the URLs of the integration, which are not known before it runs. */
export function targetOf(slug: string): string {
  return `integration:${slug}`
}

function show({ integration, subscriptions }: Destination) {
  return { integration: integration?.slug ?? null, subscriptions: subscriptions.map((subscription) => ({ ...subscription })) }
}
