// The state of the tabs Request and Transformation, or Subscriptions: one draft, its preview on the last messages, and saving. The draft is kept while another
// tab is shown.

import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { type Answer, type ApiProblem, call } from '../../../api/client.ts'
import { useChange } from '../../../api/queries.ts'
import type { Destination } from '../draft.ts'
import type { Definition } from '../integration/definition.ts'
import type { SubscriptionDraft } from '../integration/subscription-draft.ts'
import type { PreviewEntry } from './preview-rows.ts'
import {
  isShapeChanged,
  type RequestDraft,
  type ShapeChanges,
  type ShapeDraft,
  shapeChangesOf,
  shapeDraftOf,
  shapeOf,
  shapeProblems,
  type TransformationDraft,
} from './shape-draft.ts'

export const PREVIEWED = 50
const TYPING_MS = 350

/** The service runs few previews at a time. */
const AGAIN = {
  retry: (failures: number, { code }: ApiProblem) => code === 'too_many_previews' && failures < 5,
  retryDelay: 700,
}

type Preview = Answer<'POST /api/destinations/{id}/preview'>

export interface ShapeState {
  destination: Destination
  draft: ShapeDraft
  isReadOnly: boolean
  isChanged: boolean
  /** Whether somebody else has saved another version since editing began. */
  isOutdated: boolean
  problems: ReadonlyMap<string, string>
  /** What differs from the saved version; null if nothing does, or if there are problems. */
  changes: ShapeChanges | null
  setRequest: (request: RequestDraft | null) => void
  setTransformation: (transformation: TransformationDraft | null) => void
  setSubscriptions: (subscriptions: readonly SubscriptionDraft[]) => void
  /** Goes back to what is saved. */
  discard: () => void
  /** Rejects with the error of the API. */
  save: (changes: ShapeChanges | { version: number }) => Promise<Destination>
}

/** `definition` is null for a webhook, and if the catalogue does not have the integration. */
export function useShape(destination: Destination, isReadOnly: boolean, definition: Definition | null = null): ShapeState {
  const startOf = (from: Destination) => ({ base: from, draft: shapeDraftOf(shapeOf(from), definition) })
  const [{ base, draft }, setState] = useState(() => startOf(destination))
  const isChanged = isShapeChanged(shapeOf(base), draft, definition)
  const isOutdated = destination.version > base.version
  // Without unsaved changes, a version that somebody else saved is shown at once.
  if (isOutdated && !isChanged) setState(startOf(destination))
  const change = useChange(
    'PATCH /api/destinations/{id}',
    'GET /api/destinations',
    'GET /api/destinations/{id}',
    'GET /api/destinations/{id}/versions',
    'GET /api/destinations/{id}/health',
  )
  useEffect(() => {
    if (!isChanged) return
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isChanged])
  const problems = shapeProblems(draft, definition)
  const edit = (changed: Partial<ShapeDraft>): void => setState((before) => ({ ...before, draft: { ...before.draft, ...changed } }))
  return {
    destination,
    draft,
    isReadOnly,
    isChanged,
    isOutdated: isOutdated && isChanged,
    problems,
    changes: problems.size > 0 ? null : shapeChangesOf(shapeOf(base), draft),
    setRequest: (request) => edit({ request }),
    setTransformation: (transformation) => edit({ transformation }),
    setSubscriptions: (subscriptions) => edit({ subscriptions }),
    discard: () => setState(startOf(destination)),
    async save(body) {
      const saved = await change.mutateAsync({ params: { id: destination.id }, body })
      setState(startOf(saved))
      return saved
    },
  }
}

export interface PreviewState {
  /** The last answer, also while a newer one is loading or failed; null before the first one. */
  entries: readonly PreviewEntry[] | null
  /** The error of the newest request. */
  problem: ApiProblem | null
  isLoading: boolean
  refresh: () => void
}

/** Follows the draft as it is typed. */
export function usePreview({ destination: { id, version }, changes, problems }: ShapeState): PreviewState {
  const [asked] = useDebouncedValue(JSON.stringify(changes), TYPING_MS)
  const query = useQuery<Preview, ApiProblem>({
    queryKey: ['preview', id, version, asked],
    queryFn: ({ signal }) => preview(id, JSON.parse(asked) as ShapeChanges | null, signal),
    enabled: problems.size === 0,
    ...AGAIN,
    // Until there is a message to show.
    refetchInterval: ({ state }) => (state.data !== undefined && state.data.data.length === 0 ? 3_000 : false),
  })
  const last = useRef<readonly PreviewEntry[] | null>(null)
  if (query.data !== undefined) last.current = query.data.data
  return {
    entries: last.current,
    problem: problems.size === 0 ? query.error : null,
    isLoading: query.isFetching || (problems.size === 0 && asked !== JSON.stringify(changes)),
    refresh: () => void query.refetch(),
  }
}

/** What is sent now, to compare it with what would be sent. */
export function useCurrent({ destination: { id, version } }: ShapeState, isEnabled: boolean) {
  return useQuery<Preview, ApiProblem>({
    queryKey: ['preview', id, version, 'null'],
    queryFn: ({ signal }) => preview(id, null, signal),
    enabled: isEnabled,
    ...AGAIN,
  })
}

function preview(id: string, changes: ShapeChanges | null, signal: AbortSignal): Promise<Preview> {
  return call('POST /api/destinations/{id}/preview', {
    params: { id },
    body: { limit: PREVIEWED, ...(changes === null ? {} : { changes }) },
    signal,
  })
}
