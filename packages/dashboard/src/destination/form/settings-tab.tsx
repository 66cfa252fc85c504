// The tab Settings of a destination: the form, with the settings as they were when it was opened. Changes by others since then neither replace
// what was typed nor are overwritten.

import { Alert, Group, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { SmallButton } from '../../components/styled.tsx'
import type { Destination } from '../kind.ts'
import { useChangeDestination } from '../use-change-destination.ts'
import { DestinationForm } from './destination-form.tsx'
import type { Draft } from './draft.ts'
import type { EditForm } from './field-state.ts'

interface SettingsTabProps<Saved extends Destination, Edited extends Draft> {
  destination: Saved
  /** The form may depend on what is saved. */
  formOf: (saved: Saved) => EditForm<Saved, Edited>
  mayEdit: boolean
}

export function SettingsTab<Saved extends Destination, Edited extends Draft>({
  destination,
  formOf,
  mayEdit,
}: SettingsTabProps<Saved, Edited>) {
  const [{ base, version }, setOpened] = useState({ base: destination, version: 0 })
  const reload = (next: Saved): void => setOpened({ base: next, version: version + 1 })
  const save = useChangeDestination()
  const form = formOf(base)
  const ignored = new Set<PropertyKey>(['enabled', 'paused', 'version', ...form.editedElsewhere])
  const settingsOf = (of: Saved): string => JSON.stringify(Object.entries(of).filter(([name]) => !ignored.has(name)))
  return (
    <>
      {settingsOf(base) !== settingsOf(destination) && (
        <Alert color="blue" variant="light" title="The settings were changed elsewhere" mb="md" maw={860}>
          <Group gap="sm">
            <Text size="sm">This form shows older values. Saving writes only the fields that you changed.</Text>
            <SmallButton onClick={() => reload(destination)}>Load current settings</SmallButton>
          </Group>
        </Alert>
      )}
      <DestinationForm
        // A new base needs a new form.
        key={version}
        form={form}
        initial={form.draftOf(base)}
        id={base.id}
        isReadOnly={!mayEdit}
        onSave={async (draft) => {
          const body = form.patchOf(base, draft)
          // The values are the same in another notation (240 min, 4 h): nothing to save, and the form shows the normal notation.
          const saved = body === null ? base : ((await save.mutateAsync({ params: { id: base.id }, body })) as Saved)
          notifications.show({ color: 'teal', message: 'Saved.' })
          reload(saved)
        }}
      />
    </>
  )
}
