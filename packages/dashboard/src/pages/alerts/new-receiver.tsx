// Sends alerts to Slack, PagerDuty, Teams, Discord, email or a webhook: asks for what the tool needs, shows what it will get, and makes the destination.

import { Alert, NativeSelect, PasswordInput, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../../api/queries.ts'
import { Json } from '../../components/copyable.tsx'
import { entered, Form } from '../../components/inputs.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { Note, SecondaryButton, SmallTitle, ViewLink } from '../../components/styled.tsx'
import { previewOf, RECEIVER_KINDS, type ReceiverKind } from './receiver-kinds.ts'

const SYSTEM = 'system'

export function NewReceiver() {
  const create = useChange('POST /api/destinations', 'GET /api/destinations', 'GET /api/alerts')
  const [id, setId] = useState('slack')
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [isSubmitted, setSubmitted] = useState(false)
  const kind = RECEIVER_KINDS.find((each) => each.id === id) as ReceiverKind
  const problems = kind.problems(values)
  const isValid = Object.keys(problems).length === 0
  const submit = (): void => {
    setSubmitted(true)
    if (!isValid) return
    create.mutate(
      { body: { name: `Alerts in ${kind.name}`, sourceIds: [SYSTEM], ...kind.settings(values) } },
      {
        onSuccess: () => {
          setValues({})
          setSubmitted(false)
        },
      },
    )
  }
  return (
    <Form onSubmit={submit} aria-label="Send alerts to a tool">
      <Stack gap="sm" maw={560}>
        <NativeSelect
          label="Send alerts to"
          data={RECEIVER_KINDS.map((each) => ({ value: each.id, label: each.name }))}
          {...entered(id, (next) => {
            setId(next)
            setSubmitted(false)
            create.reset()
          })}
        />
        {kind.fields.map(({ name, label, placeholder, about, isSecret = false }) => {
          const Input = isSecret ? PasswordInput : TextInput
          return (
            <Input
              key={`${id} ${name}`}
              label={label}
              description={about}
              placeholder={placeholder}
              autoComplete="off"
              data-1p-ignore
              {...entered(values[name] ?? '', (next) => setValues({ ...values, [name]: next.trimStart() }))}
              error={isSubmitted ? (problems[name] ?? null) : null}
            />
          )
        })}
        <SmallTitle>Preview</SmallTitle>
        <Note>What {kind.name === 'A webhook' ? 'it' : kind.name} gets when a destination fails:</Note>
        <Json value={previewOf(kind.settings(values))} label="preview of an alert" />
        {create.error !== null && <ErrorAlert problem={create.error} />}
        {create.data !== undefined && (
          <Alert color="teal" variant="light" role="status" title="Destination created">
            Send a test alert to see that it arrives. Change it on{' '}
            <ViewLink to={`/destinations/${encodeURIComponent(create.data.id)}`}>its page</ViewLink>.
          </Alert>
        )}
        <SecondaryButton type="submit" loading={create.isPending} style={{ alignSelf: 'flex-start' }}>
          Create the destination
        </SecondaryButton>
      </Stack>
    </Form>
  )
}
