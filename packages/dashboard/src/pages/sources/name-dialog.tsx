// Asks for the name of a source: of a new one, or another for one that is there.

import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { nameProblem } from './validation.ts'

export interface NameDialogProps {
  opened: boolean
  onClose: () => void
  title: string
  /** What happens, in a sentence. */
  about: string
  verb: string
  initial?: string
  /** Rejects with what the API refused. */
  onSave: (name: string) => Promise<unknown>
}

export function NameDialog(props: NameDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title} centered>
      <Fields {...props} />
    </Modal>
  )
}

function Fields({ onClose, about, verb, initial = '', onSave }: NameDialogProps) {
  const [name, setName] = useState(initial)
  const [isTried, setTried] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<string | null>(null)
  const problem = nameProblem(name)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setTried(true)
    if (problem !== null) return
    setBusy(true)
    setRefusal(null)
    try {
      await onSave(name)
      onClose()
    } catch (error) {
      setRefusal((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack>
        <Text size="sm" c="dimmed">
          {about}
        </Text>
        <TextInput
          label="Name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={isTried || name.length > 100 ? problem : null}
          data-autofocus
          autoComplete="off"
          data-1p-ignore
          required
        />
        {refusal !== null && (
          <Alert color="red" role="alert">
            {refusal}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={isBusy}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
