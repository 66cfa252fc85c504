// A form in a dialog: shows the error if saving fails, and closes on success.

import { Alert, Button, Group, Modal, type ModalProps, Stack } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { SecondaryButton } from './styled.tsx'

interface FormDialogProps extends Pick<ModalProps, 'size' | 'centered'> {
  opened?: boolean
  onClose: () => void
  title: string
  /** The label of the button that saves. */
  verb: string
  isReady?: boolean
  /** Rejects with the error of the API. Undefined if nothing was sent, and the dialog stays open. */
  onSubmit: () => Promise<unknown> | undefined
  children: ReactNode
}

export function FormDialog({ opened = true, onClose, title, verb, isReady = true, onSubmit, children, ...modal }: FormDialogProps) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const close = (): void => {
    setProblem(null)
    onClose()
  }
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    const saved = onSubmit()
    if (saved === undefined) return
    setBusy(true)
    setProblem(null)
    try {
      await saved
      close()
    } catch (error) {
      setProblem((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened={opened} onClose={close} title={title} {...modal}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack>
          {children}
          {problem !== null && (
            <Alert color="red" role="alert">
              {problem}
            </Alert>
          )}
          <Group justify="flex-end">
            <SecondaryButton onClick={close}>Cancel</SecondaryButton>
            <Button type="submit" loading={isBusy} disabled={!isReady}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
