// The list of deliveries: filters, failures grouped by cause, and replays.

import { Alert, Button, Group, Paper, SegmentedControl } from '@mantine/core'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useDestinationNames } from '../../api/use-names.ts'
import { ReplayIcon } from '../../components/icons.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { ExplainedButton, SmallButton, SmallNote, Strong } from '../../components/styled.tsx'
import { canGroup, type Filters, filtersOf, isNarrowed, listQuery, type ReplayBody, replayOf } from '../../delivery/filters.ts'
import { useSession } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'
import { changeSearch, useSearchState } from '../../url/url-state.ts'
import { ReplayDialog } from '../replays/replay-dialog.tsx'
import { Causes } from './causes.tsx'
import { DeliveryList } from './delivery-list.tsx'
import { FilterBar } from './filter-bar.tsx'
import styles from './list.module.css'
import { MAX_SELECTED, type Selection, selectionOf, selectionText, toggled } from './selection.ts'

const VIEWER = 'Replaying requires the editor or admin role.'

export default function DeliveriesPage() {
  const [params] = useSearchState()
  const filters = useMemo(() => filtersOf(params), [params])
  const { view: _, ...conditions } = filters
  const key = JSON.stringify(conditions)
  // "Last hour" counts back from this time. It stays the same until the filters change, so that the pages of the list are consistent.
  const asOf = useMemo(() => Date.now(), [key])
  const { mayEdit } = useSession()
  const { nameOf, isKnown, destinations } = useDestinationNames()
  const [body, setBody] = useState<ReplayBody | null>(null)
  const cursor = usePageCursor(key)
  const [selection, select, clearSelection] = useSelection(key)
  const all = replayOf(filters, asOf)
  return (
    <Page
      title="Deliveries"
      about="Each delivery sends one message to one destination."
      actions={
        <ExplainedButton
          name="Replay all matches"
          why={mayEdit ? (all.why ?? null) : VIEWER}
          variant="light"
          leftSection={<ReplayIcon size={15} />}
          onClick={() => all.body && setBody(all.body)}
        >
          Replay all matches
        </ExplainedButton>
      }
    >
      <FilterBar filters={filters} destinations={destinations} />
      {canGroup(filters) && (
        <SegmentedControl
          aria-label="View"
          size="xs"
          value={filters.view}
          onChange={(view) => changeSearch({ view, page: null })}
          data={[
            { value: 'causes', label: 'Failures by cause' },
            { value: 'list', label: 'List' },
          ]}
          style={{ alignSelf: 'flex-start' }}
        />
      )}
      {mayEdit && all.why !== undefined && (filters.userId !== undefined || filters.event !== undefined) && (
        <Alert color="blue" variant="light" p="xs">
          {all.why}
        </Alert>
      )}
      {filters.view === 'causes' ? (
        <Causes filters={filters} asOf={asOf} nameOf={nameOf} isKnown={isKnown} onReplay={mayEdit ? setBody : undefined} />
      ) : (
        <DeliveryList
          key={key}
          query={listQuery(filters, asOf)}
          cursor={cursor}
          nameOf={nameOf}
          selection={selection}
          onSelect={select}
          empty={<NoDeliveries filters={filters} />}
        />
      )}
      {selection.size > 0 && (
        <SelectionBar
          selection={selection}
          mayEdit={mayEdit}
          onClear={clearSelection}
          onReplay={() => setBody({ deliveryIds: [...selection] })}
        />
      )}
      <ReplayDialog body={body} onClose={() => setBody(null)} nameOf={nameOf} />
    </Page>
  )
}

/** The cursor of the page of the list, which is in the address. It belongs to the list with this key: another list begins with its first page. */
function usePageCursor(key: string): string | null {
  const [params] = useSearchState()
  const shownKey = useRef(key)
  const isOfList = shownKey.current === key
  useEffect(() => {
    if (!isOfList && params.has('page')) changeSearch({ page: null }, { replace: true })
    shownKey.current = key
  }, [key])
  return isOfList ? params.get('page') : null
}

/** The selected deliveries, which are in the address too. They belong to the list with this key: another list clears them. */
function useSelection(key: string) {
  const [params] = useSearchState()
  const [selection, setSelection] = useState<Selection>(() => selectionOf(params.get('selected')))
  const select = useCallback((ids: readonly string[], isOn: boolean): void => setSelection((before) => toggled(before, ids, isOn)), [])
  const clear = (): void => setSelection(new Set())
  const shownKey = useRef(key)
  useEffect(() => {
    if (shownKey.current !== key) clear()
    shownKey.current = key
  }, [key])
  const text = selectionText(selection)
  useEffect(() => {
    if (text !== params.get('selected')) changeSearch({ selected: text }, { replace: true })
  }, [text])
  return [selection, select, clear] as const
}

interface SelectionBarProps {
  selection: Selection
  mayEdit: boolean
  onClear: () => void
  onReplay: () => void
}

function SelectionBar({ selection, mayEdit, onClear, onReplay }: SelectionBarProps) {
  return (
    <Paper withBorder shadow="md" p="xs" className={styles.bar} role="region" aria-label="Selection">
      <Group justify="space-between" gap="xs">
        <Strong role="status">
          {exactCount(selection.size)} selected
          {selection.size >= MAX_SELECTED && ' · maximum reached'}
        </Strong>
        <Group gap="xs">
          {!mayEdit && <SmallNote>{VIEWER}</SmallNote>}
          <SmallButton onClick={onClear}>Clear</SmallButton>
          <Button size="xs" leftSection={<ReplayIcon size={14} />} disabled={!mayEdit} onClick={onReplay}>
            Replay
          </Button>
        </Group>
      </Group>
    </Paper>
  )
}

function NoDeliveries({ filters }: { filters: Filters }) {
  if (isNarrowed(filters))
    return (
      <Empty title="No deliveries match the filters" link={{ to: '/deliveries?view=list', label: 'Show all deliveries', isLight: true }}>
        Remove a filter or choose another time range. Deliveries are deleted after the retention period (SWITCHYARD_RETENTION_DAYS).
      </Empty>
    )
  return (
    <Empty title="No deliveries yet" link={{ to: '/destinations', label: 'View destinations', isLight: true }}>
      A delivery is created when a message is accepted from a source that is connected to a destination.
    </Empty>
  )
}
