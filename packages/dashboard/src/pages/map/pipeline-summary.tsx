// The map on the overview: as much as fits.

import { ErrorAlert, Loading } from '../../components/page.tsx'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { Note } from '../../components/styled.tsx'
import { PipelineView } from './pipeline-view.tsx'
import { usePipeline } from './use-pipeline.ts'

const NO_FILTER = { source: '', destination: '', text: '' }

export default function PipelineSummary() {
  const isNarrow = useIsNarrow()
  const { pipeline, problem, retry } = usePipeline(NO_FILTER, isNarrow ? 4 : 8)
  if (pipeline === undefined)
    return problem !== null ? <ErrorAlert problem={problem} onRetry={retry} /> : <Loading lines={8} label="Loading map" />
  if (pipeline.nodes.length === 0) return <Note>No sources and destinations yet.</Note>
  return <PipelineView pipeline={pipeline} isList={isNarrow} />
}
