// The ledger of each destination as an equation: owed = delivered + pending + failed + expired + cancelled. Every number links to the
// deliveries that it counts. A badge says whether a row balances. In a narrow window each destination is a card.

import { Anchor, Badge, Button, Group, Paper, SimpleGrid, Stack, Table, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { Fragment } from 'react'
import { Link } from 'wouter'
import { Empty } from '../../components/page.tsx'
import { LongNote, Note, SectionTitle, SmallTag, Tag } from '../../components/styled.tsx'
import { deliveriesAddress } from '../../delivery/filters.ts'
import type { HoldSettings } from '../../destination/destination-status.ts'
import { exactCount } from '../../text/format.ts'
import { changeSearch } from '../../url/url-state.ts'
import {
  LEDGER_STATES,
  type LedgerEntry,
  type LedgerLine,
  type LedgerState,
  type LedgerSum,
  ledgerLines,
  ledgerSum,
  missingFrom,
  quarantinePath,
} from './ledger.ts'

const SHOWN = 20
const COLORS: Readonly<Partial<Record<LedgerState, string>>> = { failed: 'red', expired: 'orange' }

interface LedgerSectionProps {
  entries: LedgerEntry[]
  destinations: (HoldSettings & { id: string; name: string })[]
  isAll: boolean
}

export function LedgerSection({ entries, destinations, isAll }: LedgerSectionProps) {
  const isWide = useMediaQuery('(min-width: 62em)', true, { getInitialValueInEffect: false })
  const lines = ledgerLines(entries, destinations)
  const shown = isAll ? lines : lines.slice(0, SHOWN)
  const sum = ledgerSum(entries)
  return (
    <Stack component="section" gap="xs" aria-labelledby="ledger">
      <Stack gap={0}>
        <SectionTitle id="ledger" style={{ scrollMarginTop: 64 }}>
          Ledger
        </SectionTitle>
        <Note>
          All deliveries of each destination since it was created. Owed counts every delivery and must equal the sum of the states. Messages
          in quarantine are not owed until you release them.
        </Note>
      </Stack>
      {lines.length === 0 ? (
        <Paper withBorder>
          <Empty title="No destinations yet" link={{ to: '/destinations', label: 'View destinations' }}>
            Add a destination to see how many deliveries it is owed and what state they are in.
          </Empty>
        </Paper>
      ) : isWide ? (
        <Wide lines={shown} sum={sum} all={lines.length} />
      ) : (
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {shown.map((line) => (
            <Card key={line.destinationId} line={line} />
          ))}
        </SimpleGrid>
      )}
      {lines.length > SHOWN && (
        <Button
          variant="subtle"
          size="xs"
          style={{ alignSelf: 'flex-start' }}
          onClick={() => changeSearch({ ledger: isAll ? null : 'all' })}
        >
          {isAll ? `Show the first ${SHOWN}` : `Show all ${exactCount(lines.length)} destinations`}
        </Button>
      )}
    </Stack>
  )
}

function Wide({ lines, sum, all }: { lines: LedgerLine[]; sum: LedgerSum; all: number }) {
  return (
    <Paper withBorder>
      <Table.ScrollContainer
        minWidth={960}
        scrollAreaProps={{ viewportProps: { tabIndex: 0, role: 'region', 'aria-label': 'Ledger of each destination' } }}
      >
        <Table verticalSpacing="xs" style={{ fontVariantNumeric: 'tabular-nums' }}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Destination</Table.Th>
              <Table.Th scope="col" ta="right">
                Owed
              </Table.Th>
              {LEDGER_STATES.map((state, at) => (
                <Fragment key={state}>
                  <Sign at={at} />
                  <Table.Th scope="col" ta="right" tt="capitalize">
                    {state}
                  </Table.Th>
                </Fragment>
              ))}
              <Table.Th scope="col">Balance</Table.Th>
              <Table.Th scope="col" ta="right">
                In quarantine
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {lines.map((line) => (
              <Table.Tr key={line.destinationId}>
                <Table.Th scope="row" fw={500} maw={320} style={{ fontVariantNumeric: 'normal' }}>
                  <Name line={line} />
                </Table.Th>
                <Table.Td ta="right">
                  <Owed line={line} />
                </Table.Td>
                {LEDGER_STATES.map((state, at) => (
                  <Fragment key={state}>
                    <Sign at={at} />
                    <Table.Td ta="right">
                      <StateNumber line={line} state={state} />
                    </Table.Td>
                  </Fragment>
                ))}
                <Table.Td>
                  <BalanceBadge missing={line.missing} />
                </Table.Td>
                <Table.Td ta="right">
                  <Quarantined line={line} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
          {all > 1 && (
            <Table.Tfoot>
              <Table.Tr style={{ borderTop: '2px solid var(--table-border-color)', borderBottom: 'none' }}>
                <Table.Th scope="row">Total ({exactCount(all)})</Table.Th>
                <Table.Th ta="right">{exactCount(sum.owed)}</Table.Th>
                {LEDGER_STATES.map((state, at) => (
                  <Fragment key={state}>
                    <Sign at={at} />
                    <Table.Th ta="right">{exactCount(sum[state])}</Table.Th>
                  </Fragment>
                ))}
                <Table.Td>
                  <BalanceBadge missing={missingFrom(sum)} />
                </Table.Td>
                <Table.Td />
              </Table.Tr>
            </Table.Tfoot>
          )}
        </Table>
      </Table.ScrollContainer>
    </Paper>
  )
}

/** Between the numbers of the equation. */
function Sign({ at }: { at: number }) {
  return (
    <Table.Td aria-hidden="true" w={16} px={0} ta="center" c="dimmed">
      {at === 0 ? '=' : '+'}
    </Table.Td>
  )
}

/** Leaves out the states with a count of 0: the equation is true without them. */
function Card({ line }: { line: LedgerLine }) {
  const states = LEDGER_STATES.filter((state) => line[state] !== 0)
  return (
    <Paper withBorder p="sm" miw={0}>
      <Group justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
        <Name line={line} />
        <BalanceBadge missing={line.missing} />
      </Group>
      <Text size="sm" mt={6} style={{ fontVariantNumeric: 'tabular-nums' }}>
        <Owed line={line} isInText /> owed
        {states.map((state, at) => (
          <Fragment key={state}>
            {at === 0 ? ' = ' : ' + '}
            <span style={{ whiteSpace: 'nowrap' }}>
              <StateNumber line={line} state={state} isInText /> {state}
            </span>
          </Fragment>
        ))}
        {line.quarantined > 0 && (
          <>
            {' · '}
            <Quarantined line={line} isInText /> in quarantine
          </>
        )}
      </Text>
    </Paper>
  )
}

function Name({ line: { destinationId, name, hold } }: { line: LedgerLine }) {
  if (name === null) return <LongNote>{destinationId} (deleted)</LongNote>
  return (
    <Group gap="xs" wrap="nowrap" miw={0}>
      <Anchor component={Link} href={`/destinations/${encodeURIComponent(destinationId)}`} size="sm" style={{ overflowWrap: 'anywhere' }}>
        {name}
      </Anchor>
      {hold !== null && (
        <Tag size="xs" color="gray" style={{ flexShrink: 0 }}>
          {hold}
        </Tag>
      )}
    </Group>
  )
}

interface LineProps {
  line: LedgerLine
  isInText?: boolean
}

function Owed({ line, ...props }: LineProps) {
  const { destinationId, name, owed } = line
  return (
    <Number value={owed} href={deliveriesAddress({ destinationId, view: 'list' })} label={`Owed to ${name ?? destinationId}`} {...props} />
  )
}

function StateNumber({ line, state, ...props }: LineProps & { state: LedgerState }) {
  const { destinationId, name } = line
  const href = deliveriesAddress({ destinationId, state })
  return <Number value={line[state]} href={href} label={`${state}, ${name ?? destinationId}`} color={COLORS[state]} {...props} />
}

function Quarantined({ line, ...props }: LineProps) {
  const label = `in quarantine, ${line.name ?? line.destinationId}`
  return <Number value={line.quarantined} href={quarantinePath()} label={label} color="orange" {...props} />
}

interface NumberProps {
  value: number
  href: string
  label: string
  color?: string | undefined
  isInText?: boolean
}

/** A count that links to its deliveries; 0 is not a link. */
function Number({ value, href, label, color, isInText = false }: NumberProps) {
  if (value === 0) return <Note span>0</Note>
  return (
    <Anchor
      component={Link}
      href={href}
      size="sm"
      underline={isInText ? 'always' : 'hover'}
      aria-label={`${exactCount(value)} ${label}`}
      {...(color === undefined ? {} : { c: `var(--mantine-color-${color}-text)` })}
    >
      {exactCount(value)}
    </Anchor>
  )
}

function BalanceBadge({ missing }: { missing: number }) {
  if (missing === 0)
    return (
      <SmallTag color="teal" style={{ flexShrink: 0 }}>
        balanced
      </SmallTag>
    )
  return (
    <Badge color="red" variant="filled" size="sm" tt="none" style={{ flexShrink: 0 }}>
      {missing > 0 ? `${exactCount(missing)} missing` : `${exactCount(-missing)} extra`}
    </Badge>
  )
}
