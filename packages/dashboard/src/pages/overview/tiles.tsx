// The totals of the period, compared with the period before. Each links to what it counts.

import { Anchor, Paper, SimpleGrid, Stack, Text, Tooltip } from '@mantine/core'
import { Link } from 'wouter'
import { change, failureRate, type Period, type Totals, whichPeriod } from '../../components/charts/periods.ts'
import { SmallNote } from '../../components/styled.tsx'
import { deliveriesAddress, type State } from '../../delivery/filters.ts'
import { capitalized, clockTime, count, exactCount, share } from '../../text/format.ts'

interface Tile {
  label: string
  name: keyof Totals
  about: string
  href: (from: string) => string
  color: string
}

const deliveries = (state: State) => (from: string) => deliveriesAddress({ state, from })

const TILES: readonly Tile[] = [
  {
    label: 'Accepted',
    name: 'accepted',
    about: 'Messages accepted and stored.',
    href: (from) => `/messages?from=${encodeURIComponent(from)}`,
    color: 'blue',
  },
  { label: 'Delivered', name: 'delivered', about: 'Deliveries that a receiver accepted.', href: deliveries('delivered'), color: 'teal' },
  {
    label: 'Retried',
    name: 'retried',
    about: 'Delivery attempts that failed and were scheduled for a retry.',
    href: () => deliveriesAddress({ state: 'pending' }),
    color: 'yellow',
  },
  {
    label: 'Failed',
    name: 'failed',
    about: 'Deliveries that failed permanently. They are not retried automatically.',
    href: deliveries('failed'),
    color: 'red',
  },
  {
    label: 'Expired',
    name: 'expired',
    about: 'Deliveries whose retry window ended before they were delivered.',
    href: deliveries('expired'),
    color: 'orange',
  },
  {
    label: 'Rejected',
    name: 'rejected',
    about: 'Messages that the tracking API rejected. They were not stored.',
    href: () => '/sources',
    color: 'grape',
  },
]

interface TilesProps {
  now: Totals
  before: Totals | null
  period: Period
  from: string
  dataSince: string | null
  isOld: boolean
}

export function Tiles({ now, before, period, from, dataSince, isOld }: TilesProps) {
  const rate = failureRate(now)
  return (
    <Stack
      component="section"
      gap="xs"
      aria-label={`Totals of the ${whichPeriod(period)}`}
      aria-busy={isOld}
      style={{ opacity: isOld ? 0.5 : 1 }}
    >
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm">
        {TILES.map(({ label, name, about, href, color }) => {
          const compared = before === null ? null : change(now[name], before[name], share)
          return (
            <Paper key={name} withBorder p="sm" style={{ borderTop: `3px solid var(--mantine-color-${color}-6)` }}>
              <Tooltip label={about}>
                <Anchor component={Link} href={href(from)} size="sm" c="dimmed">
                  {label}
                </Anchor>
              </Tooltip>
              <Text fz={26} fw={650} lh={1.25} title={exactCount(now[name])} style={{ fontVariantNumeric: 'tabular-nums' }}>
                {count(now[name])}
              </Text>
              <SmallNote>{compared === null ? ' ' : compared === 'none' ? `0 in the ${period.words} before` : compared}</SmallNote>
            </Paper>
          )
        })}
      </SimpleGrid>
      <SmallNote>
        {capitalized(whichPeriod(period))}
        {before !== null && `, compared with the ${period.words} before`}
        {dataSince !== null && dataSince > from && `. No data before ${clockTime(dataSince)}, when the first source was created`}
        {rate !== null && ` · Failed attempts: ${share(rate.rate)} of ${exactCount(rate.attempts)}`}
      </SmallNote>
    </Stack>
  )
}
