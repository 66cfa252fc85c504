// The form for a new warehouse. It tests the settings and shows the tables before anything is created.

import { useLocation } from 'wouter'
import { useApi } from '../../api/queries.ts'
import { Empty, Loaded, Page } from '../../components/page.tsx'
import { LinkButton } from '../../components/styled.tsx'
import { DestinationForm } from '../../destination/form/destination-form.tsx'
import { onlySource } from '../../destination/form/draft.ts'
import { useCreateDestination } from '../../destination/form/use-create-destination.tsx'
import { useSession } from '../../session/session.tsx'
import { CheckPanel } from './check-view.tsx'
import { createBodyOf, newWarehouse } from './form/warehouse-draft.ts'
import { NEW_WAREHOUSE_FORM } from './form/warehouse-form.tsx'
import { IfInstalled } from './install-package.tsx'

export default function NewWarehousePage() {
  const { mayEdit } = useSession()
  const back = <LinkButton to="/destinations">{mayEdit ? 'Cancel' : 'View destinations'}</LinkButton>
  return (
    <Page
      title="Add a warehouse"
      about="Every message becomes rows in tables: Parquet files, PostgreSQL or ClickHouse."
      actions={mayEdit ? back : undefined}
    >
      {mayEdit ? (
        <IfInstalled>
          <NewWarehouse />
        </IfInstalled>
      ) : (
        <Empty title="Your token is read-only" action={back}>
          Adding a destination requires the editor or admin role.
        </Empty>
      )}
    </Page>
  )
}

function NewWarehouse() {
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination('place')
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const lakes = useApi('GET /api/warehouse/folder', {})
  return (
    <>
      {dialog}
      <Loaded query={sources} lines={8}>
        {({ data }) => (
          <Loaded query={lakes} lines={8}>
            {({ url }) => (
              <DestinationForm
                form={NEW_WAREHOUSE_FORM}
                initial={{ ...newWarehouse(url), sourceIds: onlySource(data) }}
                id={null}
                isReadOnly={false}
                onSave={async (draft) => {
                  const { id } = await create(createBodyOf(draft))
                  navigate(`/destinations/${encodeURIComponent(id)}?created=yes`)
                }}
              >
                {(draft, attempt) => <CheckPanel draft={draft} attempt={attempt} />}
              </DestinationForm>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}
