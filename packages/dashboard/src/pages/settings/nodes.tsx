// The nodes that are alive.

import { Alert, Badge, Group, Stack, Text } from '@mantine/core'
import { type Schemas, useApi } from '../../api/queries.ts'
import { Empty, Loaded } from '../../components/query-states.tsx'
import { ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'

type Node = Schemas['Node']

export default function Nodes() {
  const nodes = useApi('GET /api/nodes', { everyMs: 5_000 })
  return <Loaded query={nodes}>{({ data }) => <List nodes={data} />}</Loaded>
}

function List({ nodes }: { nodes: Node[] }) {
  const versions = new Set(nodes.map(({ version }) => version))
  if (nodes.length === 0) return <Empty title="No node has given a sign of life" />
  return (
    <Stack>
      {versions.size > 1 && (
        <Alert color="orange" title="The nodes have different versions">
          That is as it should be while one after the other is updated. If it stays so, one was forgotten.
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
                <Text span size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
                  {name}
                </Text>
                {current && (
                  <Badge size="xs" variant="light" tt="none">
                    answers you
                  </Badge>
                )}
              </Group>
            ),
          },
          { label: 'Version', cell: ({ version }) => version },
          { label: 'Started', cell: ({ startedAt }) => <Time at={startedAt} relative /> },
          { label: 'Last sign of life', cell: ({ seenAt }) => <Time at={seenAt} relative /> },
        ]}
      />
      <Text size="sm" c="dimmed">
        With SQLite there is one node. With PostgreSQL any number work on the same store; one that stops is missing here soon, and the
        others take over what it had claimed.
      </Text>
    </Stack>
  )
}
