// The same as the map, as a list with sparklines: on a phone, and for whoever prefers it.

import { Badge, Group, Paper, Stack, Text } from '@mantine/core'
import { Sparkline } from '../../components/sparkline.tsx'
import { NameLink, Note, SmallNote, SmallTitle } from '../../components/styled.tsx'
import { exactCount } from '../../text/format.ts'
import type { Kind, Mood, Node, Pipeline } from './pipeline.ts'
import { rateText } from './pipeline.ts'

const TITLES: Readonly<Record<Kind, string>> = { source: 'Sources', gate: 'Tracking plans and quarantine', destination: 'Destinations' }
const COLORS: Readonly<Record<Mood, string>> = { good: 'teal', quiet: 'gray', warning: 'orange', bad: 'red' }

export function PipelineList({ pipeline, label }: { pipeline: Pipeline; label: string }) {
  return (
    <Stack gap="md" role="group" aria-label={label}>
      {(['source', 'gate', 'destination'] as const).map((kind) => {
        const nodes = pipeline.nodes.filter((node) => node.kind === kind)
        return (
          nodes.length > 0 && (
            <Stack key={kind} gap={6}>
              <SmallTitle>{TITLES[kind]}</SmallTitle>
              <Paper withBorder>
                <Stack component="ul" gap={0} m={0} p={0} style={{ listStyle: 'none' }}>
                  {nodes.map((node, at) => (
                    <Row key={node.id} node={node} isFirst={at === 0} />
                  ))}
                </Stack>
              </Paper>
            </Stack>
          )
        )
      })}
    </Stack>
  )
}

function Row({ node, isFirst }: { node: Node; isFirst: boolean }) {
  const { name, to, mood, status, cause, perMinute, series, waiting, kind } = node
  const isProblem = mood === 'bad' || mood === 'warning'
  return (
    <Stack component="li" gap={2} px="sm" py={8} style={isFirst ? {} : { borderTop: '1px solid var(--mantine-color-default-border)' }}>
      <Group justify="space-between" wrap="nowrap" gap="sm">
        <Group gap={8} wrap="nowrap" miw={0}>
          <NameLink to={to} size="sm" lineClamp={1}>
            {name}
          </NameLink>
          <Badge variant="light" tt="none" size="sm" color={COLORS[mood]} style={{ flexShrink: 0 }}>
            {status}
          </Badge>
        </Group>
        <Group gap={8} wrap="nowrap">
          <Text size="xs" style={{ whiteSpace: 'nowrap', fontVariantNumeric: 'tabular-nums' }}>
            {rateText(perMinute)}
          </Text>
          {series.length > 0 && <Sparkline values={series} color={COLORS[mood]} width={56} height={20} />}
        </Group>
      </Group>
      {isProblem && <Note>{cause}</Note>}
      {kind === 'destination' && waiting > 0 && <SmallNote>{exactCount(waiting)} waiting</SmallNote>}
    </Stack>
  )
}
