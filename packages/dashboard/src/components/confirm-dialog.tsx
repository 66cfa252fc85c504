// Dialogs: one asks for confirmation before an action that cannot be undone, and says what it does; the other has a form. Both show the error
// if the action fails, and close on success.

import { Alert, Button, Group, Modal, type ModalProps, Stack, TextInput } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { SecondaryButton } from './styled.tsx'

export interface ConfirmDialogProps {
  opened: boolean
  onClose: () => void
  title: string
  /** What will happen, in full sentences. */
  children: ReactNode
  /** The label of the button that confirms. */
  verb: string
  /** A text that must be typed to confirm, for actions where a mistake is costly. */
  typed?: string | undefined
  onConfirm: () => Promise<unknown>
  /** Red by default; another colour for actions that cannot lose anything. */
  color?: string
}

export function ConfirmDialog({ opened, onClose, title, children, verb, typed, onConfirm, color = 'red' }: ConfirmDialogProps) {
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const close = (): void => {
    setText('')
    setProblem(null)
    onClose()
  }
  const confirm = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await onConfirm()
      close()
    } catch (error) {
      setProblem((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened={opened} onClose={close} title={title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack gap="md">
        <div>{children}</div>
        {typed !== undefined && (
          <TextInput
            label={`Type ${typed} to confirm`}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
          />
        )}
        {problem !== null && (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        <Group justify="flex-end">
          <SecondaryButton onClick={close}>Cancel</SecondaryButton>
          <Button color={color} loading={isBusy} disabled={typed !== undefined && text !== typed} onClick={() => void confirm()}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

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
