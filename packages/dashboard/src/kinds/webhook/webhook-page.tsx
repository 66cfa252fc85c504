// The page of a webhook.

import { lazy } from 'react'
import { useContent } from '../../destination/content/use-content.ts'
import { SettingsTab } from '../../destination/form/settings-tab.tsx'
import { DestinationFrame } from '../../destination/frame.tsx'
import { useSession } from '../../session/session.tsx'
import { CodeFailure } from './content/code-failure.tsx'
import { WEBHOOK_CONTENT } from './content/webhook-content.ts'
import type { Webhook } from './form/webhook-draft.ts'
import { WEBHOOK_FORM } from './form/webhook-form.ts'
import { WEBHOOK_SUMMARY } from './summary.ts'
import { WebhookOutcome } from './test-outcome.tsx'
import { Urls } from './urls.tsx'

const ContentTab = lazy(() => import('./content/webhook-content-tab.tsx'))

export default function WebhookPage({ destination }: { destination: Webhook }) {
  const { id, urls } = destination
  const { isAdmin } = useSession()
  const content = useContent(destination, WEBHOOK_CONTENT, !isAdmin)
  const target = urls.length === 1 ? 'the URL' : `all ${urls.length} URLs`
  return (
    <DestinationFrame
      destination={destination}
      kind={WEBHOOK_SUMMARY}
      notice={({ content: { failing } }) => failing !== null && <CodeFailure id={id} failing={failing} />}
      healthDetails={(health) => <Urls health={health} />}
      test={{
        about: `Sends a sample message to ${target} now, signed like any other.`,
        outcome: (sent) => <WebhookOutcome sent={sent} destination={destination} />,
      }}
      tabs={{
        request: <ContentTab content={content} part="request" />,
        transformation: <ContentTab content={content} part="transformation" />,
      }}
      settings={<SettingsTab destination={destination} formOf={() => WEBHOOK_FORM} isAdmin={isAdmin} />}
    />
  )
}
