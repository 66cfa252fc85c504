// A form in a dialog: shows the error if saving fails, and closes on success.

import { Alert, Button, Group, Modal, Stack } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'

export function FormModal({
  title,
  verb,
  isReady,
  onClose,
  onSubmit,
  children,
}: {
  title: string
  verb: string
  isReady: boolean
  onClose: () => void
  onSubmit: () => Promise<unknown>
  children: ReactNode
}) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setProblem(null)
    try {
      await onSubmit()
      onClose()
    } catch (error) {
      setProblem((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={onClose} title={title} size="lg">
      <form onSubmit={(event) => void submit(event)}>
        <Stack>
          {children}
          {problem !== null && (
            <Alert color="red" role="alert">
              {problem}
            </Alert>
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isBusy} disabled={!isReady}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
