// The tab Subscriptions of an integration: which action runs when, and with what.

import { Stack, Text } from '@mantine/core'
import { call } from '../../api/client.ts'
import { Json } from '../../components/copyable.tsx'
import { Note } from '../../components/styled.tsx'
import { ContentTab } from '../../destination/content/content-tab.tsx'
import type { ContentEditor } from '../../destination/content/use-content.ts'
import { VersionPart, type VersionView } from '../../destination/content/versions.tsx'
import { plural } from '../../text/format.ts'
import type { Definition } from './definition.ts'
import type { Integration } from './integration-draft.ts'
import type { IntegrationContentDraft } from './subscription-draft.ts'
import { Subscriptions } from './subscriptions.tsx'
import { whenText } from './when-fields.tsx'

interface SubscriptionsTabProps {
  content: ContentEditor<Integration, IntegrationContentDraft>
  definition: Definition
}

export default function SubscriptionsTab({ content, definition }: SubscriptionsTabProps) {
  const { draft, destination, isReadOnly, problems, fieldOf, edit } = content
  return (
    <ContentTab content={content} versions={VERSIONS}>
      {({ problem, preview }) => {
        const apiField = fieldOf(preview.problem?.field ?? null)
        return (
          <Stack gap="sm" maw={860}>
            <Note>Each subscription runs an action for the messages that match. A message that no subscription matches is skipped.</Note>
            <Subscriptions
              definition={definition}
              subscriptions={draft.subscriptions}
              onChange={(subscriptions) => edit({ subscriptions })}
              sourceIds={destination.sourceIds}
              problem={problem}
              wrong={[...problems.keys(), ...(apiField === null ? [] : [apiField])]}
              isReadOnly={isReadOnly}
              tool={{
                name: definition.title,
                ask: (lookup) => call('POST /api/destinations/{id}/choices', { params: { id: destination.id }, body: lookup }),
              }}
            />
          </Stack>
        )
      }}
    </ContentTab>
  )
}

const VERSIONS: VersionView = {
  partsOf({ subscriptions }) {
    if (subscriptions === null || subscriptions.length === 0) return []
    const on = subscriptions.filter(({ enabled }) => enabled).length
    const text = plural(subscriptions.length, 'subscription')
    return [on === subscriptions.length ? text : `${text}, ${on} on`]
  },
  content: ({ subscriptions }) =>
    subscriptions?.map(({ id, name, enabled, subscribe, mapping }) => (
      <VersionPart key={id} title={`${name}${enabled ? '' : ' (off)'}`}>
        <Text size="sm">{whenText(subscribe)}</Text>
        <Json value={mapping} label={`the mapping of ${name}`} />
      </VersionPart>
    )),
}
