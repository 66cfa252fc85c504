// Integrations that cannot reach their tool outside of Segment, with the reason. Found in their code (what they read from Segment's environment) and
// by `npm run coverage:integrations`. They stay in the catalogue, because people look for them; all but those with `oauth-managed` can be
// created, for example to preview their requests.

import type { CatalogAuth } from './catalog.ts'

const AWS = 'It needs the AWS credentials of a machine of Segment.'
const SEGMENT_BUCKET = 'It writes files to a bucket of Segment, and a program of Segment uploads them.'
const SEGMENT_EVENTS = 'It makes no request: Segment itself takes the events that it returns.'

export const PROBLEMS: Readonly<Record<string, string>> = {
  'actions-amazon-amc': 'It sends the client ID of an Amazon app that only Segment has.',
  'actions-amazon-conversions-api': 'It sends the client ID of an Amazon app that only Segment has.',
  'actions-aws-kinesis': AWS,
  'actions-braze-cohorts': 'It needs a partner key of Braze that only Segment has.',
  'actions-dotdigital-audiences': 'It needs a partner token of Dotdigital that only Segment has.',
  'actions-dynamic-yield-audiences': 'It needs a client secret of Dynamic Yield that only Segment has.',
  'actions-facebook-conversions-api': 'It needs an access token of Facebook that only Segment has.',
  'actions-google-enhanced-conversions': 'It needs a developer token of Google Ads that only Segment has.',
  'actions-liveramp-audiences': SEGMENT_BUCKET,
  'actions-memora': 'It sends to a test system of Twilio, unless Segment runs it.',
  'actions-ms-bing-ads-audiences': 'It needs a developer token of Microsoft Advertising that only Segment has.',
  'actions-s3': AWS,
  'actions-s3-csv': AWS,
  'actions-segment': SEGMENT_EVENTS,
  'actions-segment-profiles': SEGMENT_EVENTS,
  'actions-the-trade-desk-crm': SEGMENT_BUCKET,
  'actions-webhook-extensible':
    'It cannot renew access tokens: the URL for that is in a setting that only Segment fills in. Use a webhook instead.',
}

/** A sentence that says why the integration does not work; null if no reason is known. */
export function knownProblem(slug: string, auth: CatalogAuth): string | null {
  return auth === 'oauth-managed' ? 'It needs an OAuth app that only Segment has.' : (PROBLEMS[slug] ?? null)
}
