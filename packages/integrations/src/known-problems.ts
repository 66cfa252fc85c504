// Integrations that cannot reach their tool outside of Segment, with the reason, and what others need beside their settings. Found in their code, and
// by `npm run coverage:integrations`, which counts those without a problem. They stay in the catalogue, because people look for them.

const SEGMENT_EVENTS = 'It sends nothing by itself: it returns events for Segment to process.'

export const PROBLEMS: Readonly<Record<string, string>> = {
  'actions-apolloio':
    'It sends to an address and with a secret that only Segment has. Without them it posts to the home page of Apollo.io.',
  'actions-braze-cohorts': 'It needs a Braze partner key that only Segment has.',
  'actions-dotdigital-audiences': 'It needs a Dotdigital partner token that only Segment has.',
  'actions-dynamic-yield-audiences': 'It needs a Dynamic Yield client secret that only Segment has.',
  'actions-segment': SEGMENT_EVENTS,
  'actions-segment-profiles': SEGMENT_EVENTS,
  'actions-webhook-extensible':
    'It cannot renew access tokens, because only Segment can fill in the setting for the token URL. Use a webhook instead.',
}

/** Messages would count as delivered, although no tool got them. The others with a problem fail with a reason, and can be previewed. */
const UNAVAILABLE: ReadonlySet<string> = new Set(['actions-apolloio', 'actions-segment', 'actions-segment-profiles'])

/** A sentence that says why the integration does not work; null if no reason is known. */
export function knownProblem(slug: string): string | null {
  return PROBLEMS[slug] ?? null
}

export function isAvailable(slug: string): boolean {
  return !UNAVAILABLE.has(slug)
}
