// What the list of sources and the page of a source share: badges for the state, and the period over which messages are counted.

import { Group, SegmentedControl } from '@mantine/core'
import type { Schemas } from '../../api/client.ts'
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

export function PeriodChoice() {
  const [, change] = useSearchState()
  const period = usePeriod()
  return (
    <SegmentedControl
      aria-label="Period"
      size="xs"
      value={period.id}
      onChange={(id) => change({ period: id === DEFAULT_PERIOD ? null : id })}
      data={PERIOD_IDS.map((id) => ({ value: id, label: PERIODS[id].short }))}
    />
  )
}
