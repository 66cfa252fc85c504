// The form for a new destination. After saving, leads to its test.

import { Button } from '@mantine/core'
import { Link, useLocation } from 'wouter'
import { useApi } from '../../api/queries.ts'
import { Page } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { createBodyOf, newDraft, onlySource } from './draft.ts'
import { DestinationForm } from './form/destination-form.tsx'
import { useCreateDestination } from './use-create-destination.tsx'

export function NewDestination() {
  const { isAdmin } = useSession()
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination()
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const back = (
    <Button component={Link} href="/destinations" variant="default">
      {isAdmin ? 'Cancel' : 'View destinations'}
    </Button>
  )
  return (
    <Page
      title="Add a webhook"
      about="Only name, URL and sources are needed; everything else has defaults."
      actions={isAdmin ? back : undefined}
    >
      {dialog}
      {isAdmin ? (
        <Loaded query={sources} lines={8}>
          {({ data }) => (
            <DestinationForm
              initial={{ ...newDraft(), sourceIds: onlySource(data) }}
              id={null}
              isNew
              hasSharedSecret={false}
              signingSecretCount={0}
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
          Adding a destination requires an admin token.
        </Empty>
      )}
    </Page>
  )
}
