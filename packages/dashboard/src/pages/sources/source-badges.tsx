// What the list of sources and the page of a source share: badges for the state, and the period over which messages are counted.

import { Group } from '@mantine/core'
import type { Schemas } from '../../api/client.ts'
import { ParamSegments } from '../../components/inputs.tsx'
import { Tag } from '../../components/styled.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { DEFAULT_PERIOD, PERIOD_IDS, PERIODS, type Period, periodOf } from '../overview/periods.ts'

export function SourceBadges({ source: { enabled, requireOAuth }, size = 'sm' }: { source: Schemas['Source']; size?: string }) {
  return (
    <Group gap={4}>
      <Tag color={enabled ? 'teal' : 'gray'} size={size}>
        {enabled ? 'enabled' : 'disabled'}
      </Tag>
      {requireOAuth && (
        <Tag color="blue" size={size}>
          requires OAuth
        </Tag>
      )}
    </Group>
  )
}

export function usePeriod(): Period {
  const [params] = useSearchState()
  return periodOf(params.get('period'))
}

const PERIOD_OPTIONS = PERIOD_IDS.map((id) => ({ value: id, label: PERIODS[id].short }))

export function PeriodChoice() {
  return <ParamSegments param="period" fallback={DEFAULT_PERIOD} options={PERIOD_OPTIONS} aria-label="Period" size="xs" />
}
