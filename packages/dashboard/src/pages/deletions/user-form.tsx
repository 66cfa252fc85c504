// Asks for users and sources, for a deletion or a suppression. The caller renders what will happen, which the user then confirms.

import { Alert, Checkbox, MultiSelect, Text, Textarea } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { useApi } from '../../api/queries.ts'
import { ConfirmDialog, FormDialog } from '../../components/confirm-dialog.tsx'
import { entered, ticked } from '../../components/inputs.tsx'
import { plural } from '../../text/format.ts'
import { parseUserIds, usersProblem } from './users.ts'

export interface UserRequest {
  userIds: string[]
  /** Null for all sources. */
  sourceIds: string[] | null
  suppress: boolean
}

export interface UserFormProps {
  opened: boolean
  onClose: () => void
  title: string
  about: ReactNode
  /** Whether the form has an option to suppress the users as well. */
  hasSuppressOption: boolean
  next: string
  confirmTitle: string
  verb: string
  typed?: string
  /** Describes what will happen. */
  renderEffects: (request: UserRequest) => ReactNode
  onConfirm: (request: UserRequest) => Promise<unknown>
}

export function UserForm(props: UserFormProps) {
  const { opened, onClose, title, about, hasSuppressOption, next, confirmTitle, verb, typed, renderEffects, onConfirm } = props
  const [text, setText] = useState('')
  const [sourceIds, setSourceIds] = useState<string[]>([])
  const [suppress, setSuppress] = useState(false)
  const [isConfirming, setConfirming] = useState(false)
  const sources = useApi('GET /api/sources', { query: { limit: 1_000 }, enabled: opened })
  const userIds = parseUserIds(text)
  const problem = usersProblem(userIds)
  const request: UserRequest = { userIds, sourceIds: sourceIds.length === 0 ? null : sourceIds, suppress }
  const close = (): void => {
    setText('')
    setSourceIds([])
    setSuppress(false)
    setConfirming(false)
    onClose()
  }
  return (
    <>
      <FormDialog
        opened={opened && !isConfirming}
        onClose={close}
        title={title}
        verb={next}
        isReady={userIds.length > 0 && problem === null}
        onSubmit={() => setConfirming(true)}
        size="lg"
      >
        <Text size="sm">{about}</Text>
        <Textarea
          label="User ids"
          description={userIds.length === 0 ? 'One per line.' : `One per line: ${plural(userIds.length, 'user')}.`}
          {...entered(text, setText)}
          autosize
          minRows={3}
          maxRows={12}
          spellCheck={false}
          error={problem}
          data-autofocus
          required
        />
        <MultiSelect
          label="Sources"
          description="Leave empty for all sources."
          data={(sources.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          value={sourceIds}
          onChange={setSourceIds}
          placeholder={sourceIds.length === 0 ? 'All sources' : ''}
          searchable
          clearable
          comboboxProps={{ withinPortal: true }}
        />
        {sources.error !== null && <Alert color="red">Could not load sources: {sources.error.message}</Alert>}
        {hasSuppressOption && (
          <Checkbox
            label="Also drop new messages from these users"
            description="Otherwise their new messages are stored and delivered as usual."
            {...ticked(suppress, setSuppress)}
          />
        )}
      </FormDialog>
      <ConfirmDialog
        opened={opened && isConfirming}
        onClose={() => setConfirming(false)}
        title={confirmTitle}
        verb={verb}
        typed={typed}
        onConfirm={async () => {
          await onConfirm(request)
          close()
        }}
      >
        {renderEffects(request)}
      </ConfirmDialog>
    </>
  )
}
