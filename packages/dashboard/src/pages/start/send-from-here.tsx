// Sends a real message to the tracking API from this page, for those who have no terminal at hand.

import { Alert, Group, Stack } from '@mantine/core'
import { useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Note, SecondaryButton } from '../../components/styled.tsx'
import { rejectionAdvice, rejectionSentence } from '../../text/rejections.ts'

/** The prefix says where the message came from; the rest is random. */
function newMessageId(): string {
  return `dashboard-${Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

async function send(writeKey: string, messageId: string): Promise<string | null> {
  try {
    const response = await fetch('/v1/track', {
      method: 'POST',
      credentials: 'omit',
      body: JSON.stringify({ writeKey, messageId, userId: 'u-1', event: 'Hello Switchyard', properties: { from: 'dashboard' } }),
    })
    if (response.ok) return null
    const { code } = (await response.json().catch(() => ({}))) as { code?: string }
    return code === undefined
      ? `The service responded with status ${response.status}.`
      : `${rejectionSentence(code)} ${rejectionAdvice(code)}`
  } catch {
    return 'The service is not responding. Check that it is running and that your network connection works.'
  }
}

/** `onSent` is called with the messageId when the message is stored. */
export function SendFromHere({ source, onSent, label }: { source: Schemas['Source']; onSent: (messageId: string) => void; label: string }) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const writeKey = source.writeKeys.at(-1)
  if (writeKey === undefined) return null
  const click = async (): Promise<void> => {
    setBusy(true)
    const messageId = newMessageId()
    const error = await send(writeKey, messageId)
    setProblem(error)
    setBusy(false)
    if (error === null) onSent(messageId)
  }
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <SecondaryButton loading={isBusy} onClick={() => void click()}>
          {label}
        </SecondaryButton>
        <Note style={{ flex: '1 1 200px' }}>
          Sends a track call: event “Hello Switchyard”, user u-1. It is stored and delivered like any other message.
        </Note>
      </Group>
      {problem !== null && (
        <Alert color="red" role="alert" title="The message was rejected">
          {problem}
        </Alert>
      )}
    </Stack>
  )
}
