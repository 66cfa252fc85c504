// The names that people see. A definition's name identifies it in the `integrations` object of messages, so it cannot be corrected, and many end with
// what only Segment's users know: "(Actions)" is the second generation of its integrations, "Cloud Mode" what all of them are here.

/** Names that are still not spelled as their companies publish them, or that would lose a part of the name. */
const TITLES: Readonly<Record<string, string>> = {
  'actions-1plusx-asset-api': '1plusX Asset API',
  'actions-amazon-conversions-api': 'Amazon Conversions API',
  'actions-amazon-eventbridge': 'Amazon EventBridge',
  'actions-aws-kinesis': 'AWS Kinesis',
  'actions-blend-ai': 'Blend AI',
  'actions-customerio': 'Customer.io',
  'actions-display-video-360': 'Display & Video 360',
  'actions-first-party-dv360': 'First Party DV360',
  'actions-gainsight-px-cloud': 'Gainsight PX',
  'actions-iqm': 'IQM',
  // There is also "Iterable Lists".
  'actions-iterable-audiences': 'Iterable Audiences',
  'actions-linkedin-audiences': 'LinkedIn Audiences',
  'actions-liveramp-audiences': 'LiveRamp Audiences',
  'actions-moengage': 'MoEngage',
  'actions-ms-bing-ads-audiences': 'Microsoft Bing Ads Audiences',
  'actions-ortto-audiences': 'Ortto Audiences',
  'actions-posthog': 'PostHog',
  'actions-salesforce-marketing-cloud': 'Salesforce Marketing Cloud',
  'actions-saleswings': 'SalesWings',
  'actions-snap-conversions': 'Snap Conversions API',
  'actions-surveysparrow': 'SurveySparrow',
  'actions-voiceops': 'VoiceOps',
  'actions-youappi-audience': 'YouAppi Audiences',
  'tiktok-conversions': 'TikTok Conversions',
  'tiktok-conversions-sandbox': 'TikTok Conversions Sandbox',
}

/** "HubSpot" for "HubSpot Cloud Mode (Actions)". */
export function titleOf(slug: string, name: string): string {
  if (Object.hasOwn(TITLES, slug)) return TITLES[slug] as string
  return name
    .trim()
    .replace(/^Actions /, '')
    .replace(/ (?:\(Actions?\)|Actions)$/i, '')
    .replace(/ (?:\(Cloud(?: Destination)?\)|Cloud(?: Mode)?)$/, '')
}

export const TITLED: readonly string[] = Object.keys(TITLES)
