// The names under which Segment has published an integration, where they differ from the name in its definition. Clients and consent managers
// use them as keys of `integrations`, so they select the integration here too, however it was created. Taken from the destination catalogue in
// Segment's documentation (github.com/segmentio/segment-docs, data of 2025-11-06), which matches definitions by Segment's id. It lists 132 of them.

const PUBLISHED_NAMES: Readonly<Record<string, readonly string[]>> = {
  'actions-amazon-amc': ['Amazon AMC (Actions)'],
  'actions-amazon-eventbridge': ['Amazon EventBridge (Actions)'],
  'actions-amplitude': ['Amplitude (Actions)'],
  'actions-app-fit': ['App Fit'],
  'actions-chartmogul': ['Chart Mogul'],
  'actions-clevertap': ['Clevertap (Actions)'],
  'actions-contentstack': ['Contentstack'],
  'actions-customerio': ['Customer.io (Actions)', 'Customer.io Actions'],
  'actions-dynamic-yield-audiences': ['Dynamic Yield Audiences'],
  'actions-gameball': ['gameball'],
  'actions-google-analytics-4': ['Actions Google Analytic 4', 'Actions Google Analytics 4', 'Google Analytics 4'],
  'actions-google-enhanced-conversions': ['Actions Google Enhanced Conversions', 'Google Enhanced Conversions'],
  'actions-hubspot-cloud': ['Hubspot Cloud Mode (actions)', 'Hubspot Cloud Mode (Actions)'],
  'actions-kameleoon': ['Actions Kameleoon'],
  'actions-launchdarkly': ['LaunchDarkly (Actions)', 'LaunchDarkly (Actions) Destination'],
  'actions-linkedin-audiences': ['LinkedIn Audiences'],
  'actions-liveramp-audiences': ['LiveRamp Audiences'],
  'actions-moloco-rmp': ['Moloco Rmp'],
  'actions-movable-ink': ['Movable Ink (Actions)'],
  'actions-ms-bing-capi': ['Microsoft Bing CAPI', 'Ms Bing Capi'],
  'actions-pardot': ['Pardot Actions'],
  'actions-reddit-conversions-api': ['Reddit Conversions Api'],
  'actions-segment': ['Segment Connections'],
  'actions-sendgrid': ['Sendgrid Marketing Campaigns', 'SendGrid Marketing Campaigns'],
  'actions-singlestore': ['Singlestore'],
  'actions-slack': ['Slack (Actions)', 'Actions Slack'],
  'actions-snap-conversions': ['Snapchat Conversions API', 'Snap Conversions API'],
  'actions-stackadapt-cloud': ['StackAdapt Events & Conversions ', 'StackAdapt Cloud (Actions)', 'StackAdapt - Actions', 'StackAdapt'],
  'actions-taboola-actions': ['Taboola (actions)'],
  'actions-the-trade-desk-crm': ['The Trade Desk Crm'],
  'actions-tiktok-offline-conversions': ['Tiktok Offline Conversions', 'Tiktok Offline Conversions (Actions)'],
  'actions-vibe-audience': ['Vibe Audiences'],
  'actions-webhook': ['Webhooks (Actions)'],
  'encharge-cloud-actions': ['Encharge Cloud (Actions)'],
  'tiktok-conversions': ['TikTok Conversions'],
}

/** In addition to the name in the definition. */
export function publishedNames(slug: string): readonly string[] {
  return Object.hasOwn(PUBLISHED_NAMES, slug) ? (PUBLISHED_NAMES[slug] as readonly string[]) : []
}
