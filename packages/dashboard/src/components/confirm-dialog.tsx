// Dialogs: one asks for confirmation before an action that cannot be undone, and says what it does; the other has a form. Both show the error
// if the action fails, and close on success.

import { Alert, Button, type ButtonProps, Group, Modal, type ModalProps, Stack, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { entered, Form } from './inputs.tsx'
import { LongText, SecondaryButton } from './styled.tsx'

/** Runs the action of a dialog: closes it on success, and has the error of the API otherwise. */
function useAction(onClose: () => void) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const close = (): void => {
    setProblem(null)
    onClose()
  }
  const run = async (action: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await action()
      close()
    } catch (error) {
      setProblem((error as ApiProblem).message)
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, problem, close, run }
}

interface EndProps extends Pick<ButtonProps, 'color' | 'disabled' | 'loading'> {
  verb: string
  problem: string | null
  onCancel: () => void
  /** Without it, the button submits the form. */
  onConfirm?: () => void
}

/** The end of a dialog: the error, and its buttons. */
export function DialogEnd({ verb, problem, onCancel, onConfirm, ...button }: EndProps) {
  return (
    <>
      {problem !== null && (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
      <Group justify="flex-end">
        <SecondaryButton onClick={onCancel}>Cancel</SecondaryButton>
        <Button {...button} {...(onConfirm === undefined ? { type: 'submit' } : { onClick: onConfirm })}>
          {verb}
        </Button>
      </Group>
    </>
  )
}

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
  const { isBusy, problem, close, run } = useAction(() => {
    setText('')
    onClose()
  })
  return (
    <Modal opened={opened} onClose={close} title={title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack gap="md">
        <LongText component="div">{children}</LongText>
        {typed !== undefined && <TextInput label={`Type ${typed} to confirm`} {...entered(text, setText)} data-autofocus />}
        <DialogEnd
          verb={verb}
          color={color}
          loading={isBusy}
          disabled={typed !== undefined && text !== typed}
          problem={problem}
          onCancel={close}
          onConfirm={() => void run(onConfirm)}
        />
      </Stack>
    </Modal>
  )
}

interface ConfirmButtonProps extends Omit<ConfirmDialogProps, 'opened' | 'onClose'> {
  /** Draws the button that opens the dialog. */
  button: (open: () => void) => ReactNode
}

export function ConfirmButton({ button, ...dialog }: ConfirmButtonProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      {button(() => setOpen(true))}
      <ConfirmDialog {...dialog} opened={isOpen} onClose={() => setOpen(false)} />
    </>
  )
}

interface FormDialogProps extends Pick<ModalProps, 'size' | 'centered'> {
  opened?: boolean
  onClose: () => void
  title: string
  /** The label of the button that saves. */
  verb: string
  isReady?: boolean
  /** Rejects with the error of the API. If it returns no promise, nothing was sent, and the dialog stays open. */
  onSubmit: () => unknown
  children: ReactNode
}

export function FormDialog({ opened = true, onClose, title, verb, isReady = true, onSubmit, children, ...modal }: FormDialogProps) {
  const { isBusy, problem, close, run } = useAction(onClose)
  const submit = (): void => {
    const saved = onSubmit()
    if (saved instanceof Promise) void run(() => saved)
  }
  return (
    <Modal opened={opened} onClose={close} title={title} closeButtonProps={{ 'aria-label': 'Close' }} {...modal}>
      <Form onSubmit={submit}>
        <Stack>
          {children}
          <DialogEnd verb={verb} loading={isBusy} disabled={!isReady} problem={problem} onCancel={close} />
        </Stack>
      </Form>
    </Modal>
  )
}
