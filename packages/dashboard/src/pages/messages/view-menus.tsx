// The menus above the list of messages: columns, and saved views.

import { ActionIcon, Button, Checkbox, Group, Popover, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { DeletionIcon } from '../../components/icons.tsx'
import { Form, ticked } from '../../components/inputs.tsx'
import { Note, RowButton, SmallNote, Strong, ViewLink } from '../../components/styled.tsx'
import { COLUMNS, isKnown, labelOf, withColumn } from './columns.ts'
import type { SavedView } from './saved-views.ts'

const MAX_PATH = 200

interface ColumnsMenuProps {
  columns: readonly string[]
  /** Paths of properties that the messages have. */
  paths: readonly string[]
  onChange: (columns: readonly string[]) => void
}

export function ColumnsMenu({ columns, paths, onChange }: ColumnsMenuProps) {
  const [path, setPath] = useState('')
  const toggle = (column: string, isOn: boolean): void => onChange(withColumn(columns, column, isOn))
  const properties = columns.filter((column) => !isKnown(column))
  return (
    <Popover position="bottom-end" width={300} shadow="md" trapFocus withinPortal>
      <Popover.Target>
        <RowButton>Columns</RowButton>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Stack gap="xs">
          {Object.entries(COLUMNS).map(([name, { label }]) => (
            <Checkbox
              key={name}
              label={label}
              disabled={name === 'event'}
              {...ticked(columns.includes(name), (isOn) => toggle(name, isOn))}
            />
          ))}
          {properties.map((name) => (
            <Checkbox key={name} label={name} {...ticked(true, () => toggle(name, false))} style={{ overflowWrap: 'anywhere' }} />
          ))}
          <Form
            onSubmit={() => {
              const wanted = path.trim()
              if (wanted === '') return
              toggle(wanted.includes('.') ? wanted : `properties.${wanted}`, true)
              setPath('')
            }}
          >
            <Group gap="xs" wrap="nowrap" align="flex-end">
              <TextInput
                label="Property"
                placeholder="properties.plan"
                size="xs"
                value={path}
                onChange={(event) => setPath(event.currentTarget.value.replaceAll(',', ''))}
                list="message-property-paths"
                maxLength={MAX_PATH}
                autoComplete="off"
                spellCheck={false}
                style={{ flexGrow: 1 }}
              />
              <Button type="submit" size="xs" variant="default">
                Add
              </Button>
            </Group>
            <datalist id="message-property-paths">
              {paths.map((each) => (
                <option key={each} value={each}>
                  {labelOf(each)}
                </option>
              ))}
            </datalist>
          </Form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

interface ViewsMenuProps {
  views: readonly SavedView[]
  /** The query of what is shown. */
  query: string
  onSave: (view: SavedView) => void
  onRemove: (name: string) => void
}

export function ViewsMenu({ views, query, onSave, onRemove }: ViewsMenuProps) {
  const [name, setName] = useState('')
  const shown = views.find((view) => view.query === query)
  return (
    <Popover position="bottom-end" width={300} shadow="md" trapFocus withinPortal>
      <Popover.Target>
        <RowButton>{shown === undefined ? 'Saved views' : `View: ${shown.name.slice(0, 30)}`}</RowButton>
      </Popover.Target>
      <Popover.Dropdown aria-label="Saved views">
        <Stack gap="xs">
          {views.length === 0 && <Note>No saved views yet.</Note>}
          {views.map((view) => (
            <Group key={view.name} justify="space-between" wrap="nowrap" gap="xs">
              <ViewLink to={view.query === '' ? '/messages' : `/messages?${view.query}`} style={{ overflowWrap: 'anywhere' }}>
                {view.name}
              </ViewLink>
              <ActionIcon variant="subtle" color="gray" aria-label={`Delete the view ${view.name}`} onClick={() => onRemove(view.name)}>
                <DeletionIcon size={14} />
              </ActionIcon>
            </Group>
          ))}
          <Strong>Save these filters and columns</Strong>
          <Form
            onSubmit={() => {
              if (name.trim() === '') return
              onSave({ name: name.trim(), query })
              setName('')
            }}
          >
            <Group gap="xs" wrap="nowrap" align="flex-end">
              <TextInput
                label="Name"
                size="xs"
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
                maxLength={60}
                autoComplete="off"
                style={{ flexGrow: 1 }}
              />
              <Button type="submit" size="xs" variant="default">
                Save
              </Button>
            </Group>
          </Form>
          <SmallNote>Views are saved in this browser. To share one, copy the address of the page.</SmallNote>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
