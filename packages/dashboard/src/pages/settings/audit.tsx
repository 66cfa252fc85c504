// The audit log: who did what and when, with the changed fields. The filters are in the page's address.

import { Code, Group, Paper, SimpleGrid, Stack, Table, Text, TextInput, UnstyledButton } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { type Schemas, useApi, useList } from '../../api/queries.ts'
import { ClearFilters, clearFilters, entered, nameOptions, ParamInput } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { LoadedList } from '../../components/responsive-table.tsx'
import { LongText, Note, SmallNote, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { isoTime, localTime } from '../../url/local-time.ts'
import { useSearchState } from '../../url/url-state.ts'
import { ACTIONS, actionText, subjectPath } from './audit-actions.ts'
import { type Difference, differences } from './difference.ts'

type Entry = Schemas['AuditEntry']

const FILTERS = ['actor', 'action', 'subject', 'user', 'from', 'to'] as const

export default function Audit() {
  const [params, change] = useSearchState()
  const [typed] = useDebouncedValue(`${params.get('subject') ?? ''}\n${params.get('user') ?? ''}`, 300)
  const [subject = '', userId = ''] = typed.split('\n')
  const query = {
    actor: params.get('actor') || undefined,
    action: params.get('action') || undefined,
    subject: subject || undefined,
    userId: userId || undefined,
    from: isoTime(params.get('from')),
    to: isoTime(params.get('to')),
  }
  const list = useList('GET /api/audit', { query, everyMs: 15_000 })
  const isFiltered = FILTERS.some((name) => (params.get(name) ?? '') !== '')
  const opened = params.get('entry')
  return (
    <Stack>
      <Filters entries={list.rows} />
      {isFiltered && (
        <Group>
          <ClearFilters onClick={() => clearFilters(FILTERS)} />
        </Group>
      )}
      <LoadedList
        list={list}
        empty={
          <Empty title={isFiltered ? 'No matching entries' : 'No entries yet'}>
            {isFiltered ? undefined : 'Every change made in the dashboard, with the command line or with the API is recorded here.'}
          </Empty>
        }
      >
        <Stack gap="xs" role="list" aria-label="Audit log">
          {list.rows.map((entry) => (
            <EntryRow
              key={entry.id}
              entry={entry}
              isOpen={opened === entry.id}
              onToggle={() => change({ entry: opened === entry.id ? null : entry.id }, { replace: true })}
            />
          ))}
        </Stack>
      </LoadedList>
    </Stack>
  )
}

function Filters({ entries }: { entries: readonly Entry[] }) {
  const [params, change] = useSearchState()
  const { isAdmin } = useSession()
  const tokens = useApi('GET /api/tokens', { query: { limit: 200 } })
  const people = useApi('GET /api/people', { query: { limit: 200 }, enabled: isAdmin })
  // Revoked tokens are still in the log, so their names come from the loaded entries, or their id from the address.
  const known = (people.data?.data ?? []).map(({ id, name, email, subject }) => ({ id, name: name ?? email ?? subject }))
  const names = new Map([...entries.map(({ actor }) => actor), ...(tokens.data?.data ?? []), ...known].map(({ id, name }) => [id, name]))
  const chosen = params.get('action') ?? ''
  const actions = new Set([...ACTIONS, ...entries.map(({ action }) => action), ...(chosen === '' ? [] : [chosen])])
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm" verticalSpacing="xs">
        <ParamCombobox param="actor" label="Person or token" options={nameOptions(names, params.get('actor') ?? '')} searchable />
        <ParamCombobox param="action" label="Action" options={[...actions].sort()} searchable />
        <ParamInput param="subject" clears="user" label="Subject" placeholder="Full id" />
        <ParamInput param="user" clears="subject" label="Suppressed user" placeholder="Full user id" />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm" verticalSpacing="xs">
        {(['from', 'to'] as const).map((name) => (
          <TextInput
            key={name}
            label={name === 'from' ? 'From' : 'To'}
            type="datetime-local"
            {...entered(localTime(params.get(name)).slice(0, 16), (next) => change({ [name]: isoTime(next) }, { replace: true }))}
          />
        ))}
      </SimpleGrid>
    </>
  )
}

function EntryRow({ entry, isOpen, onToggle }: { entry: Entry; isOpen: boolean; onToggle: () => void }) {
  const { id, at, actor, action, before, after } = entry
  const changed = differences(before, after)
  const name = nameOf(after) ?? nameOf(before)
  return (
    <Paper withBorder p="sm" role="listitem">
      <UnstyledButton onClick={onToggle} aria-expanded={isOpen} aria-controls={`entry-${id}`} w="100%">
        <Group justify="space-between" gap="xs" align="flex-start">
          <Stack gap={2} miw={0} style={{ flex: '1 1 220px' }}>
            <LongText>
              <b>{actor.name}</b> {actionText(action)} {name !== null && <b>{name}</b>}
            </LongText>
            <SmallNote lineClamp={1} style={{ overflowWrap: 'anywhere' }}>
              {before !== null && after !== null
                ? `Changed: ${changed.length === 0 ? 'no visible field' : changed.map(({ field }) => field).join(', ')}`
                : action}
            </SmallNote>
          </Stack>
          <Time at={at} />
        </Group>
      </UnstyledButton>
      {isOpen && <EntryDetails entry={entry} changed={changed} />}
    </Paper>
  )
}

interface EntryDetailsProps {
  entry: Entry
  changed: readonly Difference[]
}

function EntryDetails({ entry, changed }: EntryDetailsProps) {
  const { id, actor, action, subject, before, after } = entry
  const path = subject === null ? null : subjectPath(action, subject)
  return (
    <Stack gap="sm" mt="sm" id={`entry-${id}`}>
      <Group gap="md">
        <Text size="sm">
          <Note span>Action </Note>
          <Code>{action}</Code>
        </Text>
        {subject !== null && (
          <LongText>
            <Note span>Subject </Note>
            {path === null ? <Code>{subject}</Code> : <ViewLink to={path}>{subject}</ViewLink>}
          </LongText>
        )}
        <Text size="sm">
          <Note span>{actor.type === 'person' ? 'Person ' : 'Token '}</Note>
          <Code>{actor.id}</Code>
        </Text>
        <Whose actor={actor} />
      </Group>
      {changed.length === 0 ? (
        <Note>
          {before === null && after === null ? 'No details were recorded.' : 'No visible field differs. The changed value is hidden.'}
        </Note>
      ) : (
        <ChangedFields entry={entry} changed={changed} />
      )}
    </Stack>
  )
}

/** A token may belong to a person. */
function Whose({ actor: { type, email, subject, owner } }: Pick<Entry, 'actor'>) {
  const who = type === 'person' ? (email ?? subject) : owner === null ? null : (owner.email ?? owner.subject)
  if (who == null) return null
  return (
    <LongText>
      <Note span>{type === 'person' ? 'Known as ' : 'Token of '}</Note>
      {who}
    </LongText>
  )
}

function ChangedFields({ entry: { before, after }, changed }: EntryDetailsProps) {
  const hasBoth = before !== null && after !== null
  return (
    <Table.ScrollContainer minWidth={hasBoth ? 420 : 0} type="native" tabIndex={0} role="region" aria-label="Changed fields">
      <Table verticalSpacing={4} withTableBorder>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Field</Table.Th>
            {before !== null && <Table.Th>Before</Table.Th>}
            {after !== null && <Table.Th>After</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {changed.map((each) => (
            <Table.Tr key={each.field}>
              <Table.Td style={{ verticalAlign: 'top' }}>
                <Group gap={6}>
                  <Code>{each.field}</Code>
                  {hasBoth && each.kind !== 'changed' && (
                    <Tag size="xs" color={each.kind === 'added' ? 'teal' : 'red'}>
                      {each.kind}
                    </Tag>
                  )}
                </Group>
              </Table.Td>
              {before !== null && <Value text={each.before} />}
              {after !== null && <Value text={each.after} />}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function Value({ text }: { text: string | null }) {
  return (
    <Table.Td style={{ verticalAlign: 'top' }}>
      {text === null ? (
        <Note span>–</Note>
      ) : (
        <Text span size="xs" ff="monospace" style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
          {text}
        </Text>
      )}
    </Table.Td>
  )
}

function nameOf(thing: Record<string, unknown> | null): string | null {
  const name = thing?.['name']
  return typeof name === 'string' ? name : null
}
