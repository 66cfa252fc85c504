// Integrations that cannot reach their tool outside of Segment, with the reason, and what others need beside their settings. Found in their code, and
// by `npm run coverage:integrations`, which counts those without a problem. They stay in the catalogue, because people look for them.

const SEGMENT_EVENTS = 'It sends nothing by itself: it returns events for Segment to process.'

export const PROBLEMS: Readonly<Record<string, string>> = {
  'actions-amazon-eventbridge':
    'It writes to an event source of the AWS partner segment.com, which only the AWS account of Segment may do.',
  'actions-apolloio':
    'It sends to an address and with a secret that only Segment has. Without them it posts to the home page of Apollo.io.',
  'actions-braze-cohorts': 'It needs a Braze partner key that only Segment has.',
  'actions-display-video-360': 'It uploads users as a data partner of Google, with an ID that only Segment has.',
  'actions-dotdigital-audiences': 'It needs a Dotdigital partner token that only Segment has.',
  'actions-dynamic-yield-audiences': 'It needs a Dynamic Yield client secret that only Segment has.',
  'actions-google-data-manager': 'It sends nothing: the code of its actions is empty.',
  'actions-noop': 'It sends nothing.',
  'actions-segment': SEGMENT_EVENTS,
  'actions-segment-profiles': SEGMENT_EVENTS,
  'actions-twilio-messaging-omnichannel': 'It sends nothing: the code of its action is a placeholder. Use Twilio Messaging instead.',
  'actions-twilio-studio': 'It looks up the phone number of each user at Segment’s profile service.',
}

/** Messages would count as delivered, although no tool got them. The others with a problem fail with a reason, and can be previewed. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  'actions-apolloio',
  'actions-google-data-manager',
  'actions-noop',
  'actions-segment',
  'actions-segment-profiles',
  'actions-twilio-messaging-omnichannel',
])

const AUDIENCE =
  'It needs messages that say who entered or left an audience, and for most tools the ID of the audience there. Segment computes audiences; Switchyard does not, so your own messages and mappings must contain them.'

/** What all actions of an integration need, beside its settings and ordinary messages. They are counted by themselves. */
export const NEEDS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'actions-amazon-amc',
    'actions-amplitude-cohorts',
    'actions-criteo-audiences',
    'actions-delivrai-audiences',
    'actions-eagleeye',
    'actions-facebook-custom-audiences',
    'actions-first-party-dv360',
    'actions-insider-audiences',
    'actions-iterable-audiences',
    'actions-iterable-lists',
    'actions-launchdarkly-audiences',
    'actions-linkedin-audiences',
    'actions-liveramp-audiences',
    'actions-marketo-static-lists',
    'actions-ms-bing-ads-audiences',
    'actions-optimizely-advanced-audience-targeting',
    'actions-ortto-audiences',
    'actions-pendo-audiences',
    'actions-postscript',
    'actions-reddit-audiences',
    'actions-rokt-audiences',
    'actions-s3-csv',
    'actions-sendgrid-audiences',
    'actions-snap-audiences',
    'actions-stackadapt-audiences',
    'actions-taboola-actions',
    'actions-the-trade-desk-crm',
    'actions-tiktok-audiences',
    'actions-vibe-audience',
    'actions-webhook-audiences',
    'actions-yahoo-audiences',
    'actions-youappi-audience',
  ].map((slug) => [slug, AUDIENCE]),
)

/** A sentence that says why the integration does not work; null if no reason is known. */
export function knownProblem(slug: string): string | null {
  return PROBLEMS[slug] ?? null
}

/** What it needs beside its settings, in a sentence; null if ordinary messages are enough. */
export function neededBeside(slug: string): string | null {
  return NEEDS[slug] ?? null
}

export function isAvailable(slug: string): boolean {
  return !UNAVAILABLE.has(slug)
}
