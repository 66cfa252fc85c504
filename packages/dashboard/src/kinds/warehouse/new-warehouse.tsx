// The form for a new warehouse.

import { Button, NativeSelect, Stack, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiProblem } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { Empty, Loaded, Page } from '../../components/page.tsx'
import { LinkButton, Note } from '../../components/styled.tsx'
import { onlySource } from '../../destination/form/draft.ts'
import { useCreateDestination } from '../../destination/form/use-create-destination.tsx'
import { useSession } from '../../session/session.tsx'

export default function NewWarehousePage() {
  const { mayEdit } = useSession()
  const sources = useApi('GET /api/sources', { query: { limit: 2 } })
  const back = <LinkButton to="/destinations">{mayEdit ? 'Cancel' : 'View destinations'}</LinkButton>
  return (
    <Page title="Add a warehouse" about="Every message becomes rows in tables." actions={mayEdit ? back : undefined}>
      {mayEdit ? (
        <Loaded query={sources} lines={4}>
          {({ data }) => <Form sourceIds={onlySource(data)} />}
        </Loaded>
      ) : (
        <Empty title="Your token is read-only" action={back}>
          Adding a destination requires the editor or admin role.
        </Empty>
      )}
    </Page>
  )
}

function Form({ sourceIds }: { sourceIds: string[] }) {
  const [, navigate] = useLocation()
  const { create, dialog } = useCreateDestination('place')
  const [engine, setEngine] = useState<'parquet' | 'postgres'>('parquet')
  const [name, setName] = useState('Lake')
  const [url, setUrl] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setProblem(null)
    try {
      const { id } = await create({ type: 'warehouse', name, sourceIds, warehouse: { engine, url } })
      navigate(`/destinations/${encodeURIComponent(id)}?tab=test&created=yes`)
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      setProblem(error.message)
    }
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      {dialog}
      <Stack gap="md" maw={560}>
        <NativeSelect
          label="Engine"
          value={engine}
          onChange={({ currentTarget }) => setEngine(currentTarget.value as 'parquet' | 'postgres')}
          data={[
            { value: 'parquet', label: 'Parquet files' },
            { value: 'postgres', label: 'PostgreSQL' },
          ]}
        />
        <TextInput label="Name" value={name} onChange={({ currentTarget }) => setName(currentTarget.value)} required />
        <TextInput
          label="Address"
          value={url}
          onChange={({ currentTarget }) => setUrl(currentTarget.value)}
          placeholder={engine === 'parquet' ? 'file:///var/lib/switchyard/lake' : 'postgres://user:password@host/database'}
          error={problem}
          required
        />
        <Note>Buckets and ClickHouse need more settings than this form has. Create them with POST /api/destinations.</Note>
        <Button type="submit" style={{ alignSelf: 'flex-start' }}>
          Add
        </Button>
      </Stack>
    </form>
  )
}
