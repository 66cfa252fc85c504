// A banner on the destination's page while its code or its mapping fails: since which version, where, and how to fix it.

import { Alert, Group, Text } from '@mantine/core'
import type { Answer } from '../../../api/queries.ts'
import { Time, ViewLink } from '../../../components/styled.tsx'
import { deliveriesAddress } from '../../../delivery/filters.ts'

type Failing = NonNullable<Answer<'GET /api/destinations/{id}/health'>['content']['failing']>

export function CodeFailure({ id, failing: { reason, error, sinceVersion, lastAt } }: { id: string; failing: Failing }) {
  const part = reason === 'transformation_failed' ? 'transformation' : 'request'
  return (
    <Alert
      color="red"
      variant="light"
      role="status"
      title={`${part === 'transformation' ? 'The transformation' : 'The mapping of the request'} fails since version ${sinceVersion}`}
    >
      <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
        {error}
      </Text>
      <Text size="sm" mt={4} component="div">
        The last delivery failed <Time at={lastAt} relative />. Correct the {part === 'transformation' ? 'code' : 'mapping'} or restore an
        older version, then replay the failed deliveries.
      </Text>
      <Group gap="md" mt={4}>
        <ViewLink c="inherit" underline="always" to={`/destinations/${encodeURIComponent(id)}?tab=${part}`}>
          Open the {part}
        </ViewLink>
        <ViewLink c="inherit" underline="always" to={deliveriesAddress({ destinationId: id, state: 'failed', reason })}>
          View failed deliveries
        </ViewLink>
      </Group>
    </Alert>
  )
}
