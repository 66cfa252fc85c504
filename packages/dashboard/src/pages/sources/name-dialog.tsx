// A dialog for the name of a source, either new or to be renamed.

import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { nameProblem } from './validation.ts'

export interface NameDialogProps {
  opened: boolean
  onClose: () => void
  title: string
  /** What happens, in one sentence. */
  description: string
  verb: string
  initial?: string
  /** Rejects with the error of the API. */
  onSave: (name: string) => Promise<unknown>
}

export function NameDialog(props: NameDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title} centered>
      <Fields {...props} />
    </Modal>
  )
}

function Fields({ onClose, description, verb, initial = '', onSave }: NameDialogProps) {
  const [name, setName] = useState(initial)
  const [wasSubmitted, setSubmitted] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [apiError, setApiError] = useState<string | null>(null)
  const problem = nameProblem(name)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setSubmitted(true)
    if (problem !== null) return
    setBusy(true)
    setApiError(null)
    try {
      await onSave(name)
      onClose()
    } catch (error) {
      setApiError((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack>
        <Text size="sm" c="dimmed">
          {description}
        </Text>
        <TextInput
          label="Name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={wasSubmitted || name.length > 100 ? problem : null}
          data-autofocus
          autoComplete="off"
          data-1p-ignore
          required
        />
        {apiError !== null && (
          <Alert color="red" role="alert">
            {apiError}
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
