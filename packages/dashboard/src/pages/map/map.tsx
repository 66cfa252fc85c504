// The map as a page of its own: everything, with filters and a search, as a picture or as a list. All of it is in the address.

import { Group } from '@mantine/core'
import { ParamInput, ParamSegments, ParamSelect } from '../../components/inputs.tsx'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { useSearchState } from '../../url/url-state.ts'
import type { Kind } from './pipeline.ts'
import { PipelineView } from './pipeline-view.tsx'
import { usePipeline } from './use-pipeline.ts'

/** Of each kind. With a search or a filter, or as a list, there is room for more. */
const MOST_SHOWN = 16
const MOST_FOUND = 60
const FILTERS = ['q', 'source', 'destination']
const VIEWS = [
  { value: 'map', label: 'Map' },
  { value: 'list', label: 'List' },
]

export default function MapPage() {
  const [params] = useSearchState()
  const isNarrow = useIsNarrow()
  const filter = { source: params.get('source') ?? '', destination: params.get('destination') ?? '', text: params.get('q') ?? '' }
  const isFiltered = Object.values(filter).some((value) => value.trim() !== '')
  const isAll = params.get('show') === 'all'
  const isList = isNarrow || params.get('as') === 'list'
  const { pipeline, whole, problem, retry } = usePipeline(filter, isAll ? 2_000 : isFiltered || isList ? MOST_FOUND : MOST_SHOWN)
  const names = (kind: Kind) =>
    (whole?.nodes ?? [])
      .filter((node) => node.kind === kind)
      .map(({ id, name }) => ({ value: id, label: name }))
      .sort((a, b) => a.label.localeCompare(b.label))
  return (
    <Page
      title="Map"
      about="The way of messages: from sources, through tracking plans, to destinations. Rates are those of the last 10 minutes."
      {...(isNarrow ? {} : { actions: <ParamSegments param="as" fallback="map" options={VIEWS} size="xs" aria-label="Shown as" /> })}
    >
      <Group gap="sm" align="flex-end" role="search">
        <ParamInput param="q" label="Name" placeholder="Any" style={{ flex: '1 1 180px' }} maw={300} />
        <ParamSelect param="source" label="Source" options={names('source')} grow={160} maw={260} />
        <ParamSelect param="destination" label="Destination" options={names('destination')} grow={160} maw={260} />
        {(isAll || pipeline?.nodes.some(({ size }) => size > 1)) && (
          <ParamSegments param="show" fallback="some" options={SHOW} size="xs" aria-label="How many are shown" />
        )}
      </Group>
      {pipeline === undefined ? (
        problem !== null ? (
          <ErrorAlert problem={problem} onRetry={retry} />
        ) : (
          <Loading lines={8} label="Loading map" />
        )
      ) : pipeline.nodes.length === 0 ? (
        isFiltered ? (
          <Empty title="Nothing matches" filters={FILTERS}>
            No source, tracking plan or destination has this name and is connected with the others.
          </Empty>
        ) : (
          <Empty title="No sources and destinations yet" link={{ to: '/start', label: 'Get started' }} />
        )
      ) : (
        <PipelineView pipeline={pipeline} isList={isList} />
      )}
    </Page>
  )
}

const SHOW = [
  { value: 'some', label: 'Most important' },
  { value: 'all', label: 'All' },
]
