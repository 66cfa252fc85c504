// The health of each URL of a webhook.

import { Stack } from '@mantine/core'
import { ResponsiveTable } from '../../components/responsive-table.tsx'
import { SectionTitle } from '../../components/styled.tsx'
import type { Health } from '../../destination/health.tsx'
import { Latency, Success } from '../../destination/status-view.tsx'
import { exactCount } from '../../text/format.ts'

export function Urls({ health: { urls } }: { health: Health }) {
  return (
    <Stack gap="xs">
      <SectionTitle>{urls.length === 1 ? 'URL' : 'URLs'}</SectionTitle>
      <ResponsiveTable
        label="URLs with success rate and latency"
        rows={urls}
        keyOf={({ url }) => url}
        columns={[
          { label: 'URL', cell: ({ url }) => url },
          { label: 'Success rate', cell: ({ success }) => <Success success={success} /> },
          { label: 'Latency', cell: ({ latencyMs }) => <Latency latencyMs={latencyMs} /> },
          { label: 'In flight', cell: ({ inFlight }) => exactCount(inFlight), isNumber: true },
        ]}
      />
    </Stack>
  )
}
