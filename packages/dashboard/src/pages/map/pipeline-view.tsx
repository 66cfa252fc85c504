// The map as a picture or as a list, with the meaning of its colours.

import { Group, Text } from '@mantine/core'
import { lazy, Suspense } from 'react'
import { Loading } from '../../components/page.tsx'
import { plural } from '../../text/format.ts'
import css from './map.module.css'
import type { Kind, Mood, Pipeline } from './pipeline.ts'
import { PipelineList } from './pipeline-list.tsx'

const PipelineMap = lazy(() => import('./pipeline-map.tsx'))

export function PipelineView({ pipeline, isList }: { pipeline: Pipeline; isList: boolean }) {
  const label = summaryOf(pipeline)
  if (isList) return <PipelineList pipeline={pipeline} label={label} />
  return (
    <>
      <Suspense fallback={<Loading lines={8} label="Loading map" />}>
        <PipelineMap pipeline={pipeline} label={label} />
      </Suspense>
      <Group gap="md" style={{ rowGap: 2 }}>
        {LEGEND.map(([mood, words]) => (
          <Text key={mood} size="xs" c="dimmed">
            <span className={`${css['key']} ${css[mood]}`} aria-hidden="true" />
            {words}
          </Text>
        ))}
        <Text size="xs" c="dimmed">
          Wider lines carry more messages. The bar of a destination is its backlog.
        </Text>
      </Group>
    </>
  )
}

const LEGEND: readonly [Mood, string][] = [
  ['good', 'Flowing'],
  ['warning', 'Look at it'],
  ['bad', 'Not flowing'],
  ['quiet', 'Nothing sent'],
]

function summaryOf({ nodes }: Pipeline): string {
  const count = (kind: Kind): number => nodes.filter((node) => node.kind === kind).reduce((sum, { size }) => sum + size, 0)
  const bad = nodes.filter(({ mood }) => mood === 'bad').map(({ name, status }) => `${name} is ${status}`)
  const all = `${plural(count('source'), 'source')} and ${plural(count('destination'), 'destination')}`
  return bad.length === 0 ? `Map of ${all}` : `Map of ${all}: ${bad.slice(0, 5).join(', ')}`
}
