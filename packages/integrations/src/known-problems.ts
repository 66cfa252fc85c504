// Integrations that cannot reach their tool outside of Segment, with the reason. Found in their code (what they read from Segment's environment) and
// by `npm run coverage:integrations`. They stay in the catalogue, because people look for them; all but those with `oauth-managed` can be
// created, for example to preview their requests.

import type { CatalogAuth } from './catalog.ts'

const AWS = 'It needs AWS credentials that only Segment has.'
const SEGMENT_BUCKET = 'It writes files to Segment’s own bucket, and a program of Segment uploads them from there.'
const SEGMENT_EVENTS = 'It sends nothing by itself: it returns events for Segment to process.'

export const PROBLEMS: Readonly<Record<string, string>> = {
  'actions-amazon-amc': 'It sends the client ID of an Amazon app that only Segment has.',
  'actions-amazon-conversions-api': 'It sends the client ID of an Amazon app that only Segment has.',
  'actions-aws-kinesis': AWS,
  'actions-braze-cohorts': 'It needs a Braze partner key that only Segment has.',
  'actions-dotdigital-audiences': 'It needs a Dotdigital partner token that only Segment has.',
  'actions-dynamic-yield-audiences': 'It needs a Dynamic Yield client secret that only Segment has.',
  'actions-facebook-conversions-api': 'It needs a Facebook access token that only Segment has.',
  'actions-google-enhanced-conversions': 'It needs a Google Ads developer token that only Segment has.',
  'actions-liveramp-audiences': SEGMENT_BUCKET,
  'actions-memora': 'Outside of Segment, it sends to a test system of Twilio.',
  'actions-ms-bing-ads-audiences': 'It needs a Microsoft Advertising developer token that only Segment has.',
  'actions-s3': AWS,
  'actions-s3-csv': AWS,
  'actions-segment': SEGMENT_EVENTS,
  'actions-segment-profiles': SEGMENT_EVENTS,
  'actions-the-trade-desk-crm': SEGMENT_BUCKET,
  'actions-webhook-extensible':
    'It cannot renew access tokens, because only Segment can fill in the setting for the token URL. Use a webhook instead.',
}

/** A sentence that says why the integration does not work; null if no reason is known. */
export function knownProblem(slug: string, auth: CatalogAuth): string | null {
  return auth === 'oauth-managed' ? 'It needs an OAuth app that only Segment has.' : (PROBLEMS[slug] ?? null)
}
