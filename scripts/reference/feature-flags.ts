// The feature flags of integrations, from the table that decides them.

import { readCatalog } from '../../packages/integrations/src/catalog.ts'
import { featureFlags, flaggedIntegrations } from '../../packages/integrations/src/feature-flags.ts'
import { code, heading, table } from './markdown.ts'
import { quoted } from './quoted-text.ts'

export async function featureFlagsPage(): Promise<string> {
  const entries = await readCatalog()
  const flagged = new Set(flaggedIntegrations())
  const rows = entries
    .filter(({ slug }) => flagged.has(slug))
    .flatMap(({ slug, title }) =>
      Object.entries(featureFlags(slug)).map(([flag, { isOn, reason }]) => [
        `[${quoted(title)}](../integrations/${slug}.md)`,
        code(flag),
        isOn ? 'on' : 'off',
        reason,
      ]),
    )
  return [
    heading('Feature flags of integrations', 'packages/integrations/src/feature-flags.ts'),
    'The code of some integrations asks for feature flags, which Segment’s app switches on for some of its customers. Here, each has a fixed default. A destination can override the flags of its integration in its settings:',
    '',
    '```json',
    '"settings": { "features": { "actions-kafka-optimize-connection": false } }',
    '```',
    '',
    'A flag that is missing has its default. A flag that the integration does not ask for is refused. The setting is part of `export` and `apply` like all other settings; the form of the dashboard does not show it.',
    '',
    table(['Integration', 'Flag', 'Default', 'What it does, and why'], rows),
    '',
  ].join('\n')
}
