// The live nodes of the installation.

import { Alert, Group, Stack } from '@mantine/core'
import { type Schemas, useApi } from '../../api/queries.ts'
import { Empty, Loaded } from '../../components/page.tsx'
import { ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongText, Note, Tag, Time } from '../../components/styled.tsx'
import { IncidentsAbout } from '../../incidents/incidents-about.tsx'

type Node = Schemas['Node']

export default function Nodes() {
  const nodes = useApi('GET /api/nodes', { everyMs: 5_000 })
  return <Loaded query={nodes}>{({ data }) => <List nodes={data} />}</Loaded>
}

function List({ nodes }: { nodes: Node[] }) {
  const versions = new Set(nodes.map(({ version }) => version))
  if (nodes.length === 0) return <Empty title="No live nodes" />
  return (
    <Stack>
      <IncidentsAbout kind="node" />
      {versions.size > 1 && (
        <Alert color="orange" title="Nodes run different versions">
          This is expected during a rolling update. If it persists, a node was not updated.
        </Alert>
      )}
      <ResponsiveTable<Node>
        label="Nodes"
        rows={nodes}
        keyOf={({ name }) => name}
        columns={[
          {
            label: 'Node',
            cell: ({ name, current }) => (
              <Group gap={6}>
                <LongText span fw={500}>
                  {name}
                </LongText>
                {current && (
                  <Tag size="xs" miw="max-content">
                    this node
                  </Tag>
                )}
              </Group>
            ),
          },
          { label: 'Version', cell: ({ version }) => version },
          { label: 'Started', cell: ({ startedAt }) => <Time at={startedAt} relative /> },
          { label: 'Last heartbeat', cell: ({ seenAt }) => <Time at={seenAt} relative /> },
        ]}
      />
      <Note>
        With SQLite there is one node. With PostgreSQL, any number of nodes share the store. A node that stops disappears from this list,
        and the other nodes take over its work. If it was not shut down, an incident is listed here.
      </Note>
    </Stack>
  )
}
