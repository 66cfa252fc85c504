// The form for a new webhook. After saving, leads to its test.

import { useLocation } from 'wouter'
import { useApi } from '../../api/queries.ts'
import { Empty, Loaded, Page } from '../../components/page.tsx'
import { LinkButton } from '../../components/styled.tsx'
import { DestinationForm } from '../../destination/form/destination-form.tsx'
import { onlySource } from '../../destination/form/draft.ts'
import { useCreateDestination } from '../../destination/form/use-create-destination.tsx'
import { useSession } from '../../session/session.tsx'
import { createBodyOf, newWebhook } from './form/webhook-draft.ts'
import { WEBHOOK_FORM } from './form/webhook-form.ts'

export default function NewWebhookPage() {
  const { mayEdit } = useSession()
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination('URL')
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const back = <LinkButton to="/destinations">{mayEdit ? 'Cancel' : 'View destinations'}</LinkButton>
  return (
    <Page
      title="Add a webhook"
      about="Only name, URL and sources are needed; everything else has defaults."
      actions={mayEdit ? back : undefined}
    >
      {dialog}
      {mayEdit ? (
        <Loaded query={sources} lines={8}>
          {({ data }) => (
            <DestinationForm
              form={WEBHOOK_FORM}
              initial={{ ...newWebhook(), sourceIds: onlySource(data) }}
              id={null}
              isReadOnly={false}
              onSave={async (draft) => {
                const { id } = await create(createBodyOf(draft))
                navigate(`/destinations/${encodeURIComponent(id)}?tab=test&created=yes`)
              }}
            />
          )}
        </Loaded>
      ) : (
        <Empty title="Your token is read-only" action={back}>
          Adding a destination requires the editor or admin role.
        </Empty>
      )}
    </Page>
  )
}
