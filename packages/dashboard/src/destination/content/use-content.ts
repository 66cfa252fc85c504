// The state of the tabs that edit what a destination sends: one draft, its preview on the last messages, and saving. All parts share one draft,
// one preview and one version, so that a change of several is saved as one. The draft is kept while another tab is shown.

import { useDebouncedValue, useWindowEvent } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { type Answer, type ApiProblem, call } from '../../api/client.ts'
import type { Operations } from '../../api/types.ts'
import type { Destination } from '../kind.ts'
import { useChangeDestination } from '../use-change-destination.ts'
import { kindOf, type PreviewEntry } from './preview-rows.ts'

export const PREVIEWED = 50
const TYPING_MS = 350
/** How often a preview is asked for again while it has no message, or a busy service did not reach all messages in time. */
const MAX_REPEATS = 200

/** The service runs few previews at a time. */
const AGAIN = {
  retry: (failures: number, { code }: ApiProblem) => code === 'too_many_previews' && failures < 20,
  retryDelay: 700,
}

type Preview = Answer<'POST /api/destinations/{id}/preview'>
export type ContentChanges = NonNullable<Operations['POST /api/destinations/{id}/preview']['body']['changes']>

/** What a kind of destination sends, while it is edited. */
export interface ContentForm<Of extends Destination, Edited> {
  draftOf: (destination: Of) => Edited
  /** The problems that need no answer of the service, by field. */
  problemsOf: (draft: Edited) => ReadonlyMap<string, string>
  /** What differs from the saved version; null if nothing does. The draft must have no problems. */
  changesOf: (saved: Of, draft: Edited) => ContentChanges | null
  /** The field of the form at which to show an error of the API; null if none does. */
  fieldOf: (field: string, draft: Edited) => string | null
}

export interface ContentState {
  destination: Destination
  isReadOnly: boolean
  isChanged: boolean
  isSaving: boolean
  /** Whether somebody else has saved another version since editing began. */
  isOutdated: boolean
  problems: ReadonlyMap<string, string>
  /** What differs from the saved version; null if nothing does, or if there are problems. */
  changes: ContentChanges | null
  fieldOf: (field: string | null) => string | null
  /** Goes back to what is saved. */
  discard: () => void
  /** Rejects with the error of the API. */
  save: (changes: ContentChanges | { version: number }) => Promise<Destination>
}

export interface ContentEditor<Of extends Destination, Edited> extends ContentState {
  destination: Of
  draft: Edited
  edit: (changes: Partial<Edited>) => void
}

export function useContent<Of extends Destination, Edited>(
  destination: Of,
  form: ContentForm<Of, Edited>,
  isReadOnly: boolean,
): ContentEditor<Of, Edited> {
  const startOf = (from: Of) => ({ base: from, draft: form.draftOf(from) })
  const [{ base, draft }, setState] = useState(() => startOf(destination))
  const isChanged = JSON.stringify(form.draftOf(base)) !== JSON.stringify(draft)
  const isOutdated = destination.version > base.version
  // Without unsaved changes, a version that somebody else saved is shown at once.
  if (isOutdated && !isChanged) setState(startOf(destination))
  const change = useChangeDestination()
  // The browser asks before unsaved changes are lost.
  useWindowEvent('beforeunload', (event) => isChanged && event.preventDefault())
  const problems = form.problemsOf(draft)
  return {
    destination,
    draft,
    isReadOnly,
    isChanged,
    isSaving: change.isPending,
    isOutdated: isOutdated && isChanged,
    problems,
    changes: problems.size > 0 ? null : form.changesOf(base, draft),
    fieldOf: (field) => (field === null ? null : form.fieldOf(field.replace(/^changes\./, ''), draft)),
    edit: (changed) => setState((before) => ({ ...before, draft: { ...before.draft, ...changed } })),
    discard: () => setState(startOf(destination)),
    async save(body) {
      const saved = (await change.mutateAsync({ params: { id: destination.id }, body })) as Of
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
export function usePreview({ destination: { id, version }, changes, problems }: ContentState): PreviewState {
  const [asked] = useDebouncedValue(JSON.stringify(changes), TYPING_MS)
  const query = useQuery<Preview, ApiProblem>({
    queryKey: ['preview', id, version, asked],
    queryFn: ({ signal }) => preview(id, JSON.parse(asked) as ContentChanges | null, signal),
    enabled: problems.size === 0,
    ...AGAIN,
    refetchInterval: ({ state }) => (isUnfinished(state.data) && state.dataUpdateCount < MAX_REPEATS ? 3_000 : false),
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

/** There is no message yet, or a busy service did not reach all of them in time. */
function isUnfinished(preview: Preview | undefined): boolean {
  return preview !== undefined && (preview.data.length === 0 || preview.data.some((entry) => kindOf(entry) === 'not run'))
}

/** What is sent now, to compare it with what would be sent. */
export function useCurrent({ destination: { id, version } }: ContentState, isEnabled: boolean) {
  return useQuery<Preview, ApiProblem>({
    queryKey: ['preview', id, version, 'null'],
    queryFn: ({ signal }) => preview(id, null, signal),
    enabled: isEnabled,
    ...AGAIN,
    refetchInterval: ({ state }) => (isEnabled && isUnfinished(state.data) && state.dataUpdateCount < MAX_REPEATS ? 3_000 : false),
  })
}

function preview(id: string, changes: ContentChanges | null, signal: AbortSignal): Promise<Preview> {
  return call('POST /api/destinations/{id}/preview', {
    params: { id },
    body: { limit: PREVIEWED, ...(changes === null ? {} : { changes }) },
    signal,
  })
}
