// A dialog for the name of a source, either new or to be renamed.

import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { FormDialog } from '../../components/confirm-dialog.tsx'
import { entered } from '../../components/inputs.tsx'
import { Note } from '../../components/styled.tsx'
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

export function NameDialog({ onClose, description, initial = '', onSave, ...dialog }: NameDialogProps) {
  const [typed, setTyped] = useState<string | null>(null)
  const [wasSubmitted, setSubmitted] = useState(false)
  const name = typed ?? initial
  const problem = nameProblem(name)
  const close = (): void => {
    setTyped(null)
    setSubmitted(false)
    onClose()
  }
  const submit = (): Promise<unknown> | undefined => {
    setSubmitted(true)
    return problem === null ? onSave(name) : undefined
  }
  return (
    <FormDialog {...dialog} onClose={close} onSubmit={submit} centered>
      <Note>{description}</Note>
      <TextInput
        label="Name"
        {...entered(name, setTyped)}
        error={wasSubmitted || name.length > 100 ? problem : null}
        data-autofocus
        autoComplete="off"
        data-1p-ignore
        required
      />
    </FormDialog>
  )
}
