// Sends a real message by the tracking API, from this page: for those who have no terminal at hand.

import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { rejectionAdvice, rejectionSentence } from '../../text/rejections.ts'

/** Begins with a word that tells where it came from; the rest is made up. */
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
    return code === undefined ? `The service answered ${response.status}.` : `${rejectionSentence(code)} ${rejectionAdvice(code)}`
  } catch {
    return 'The service does not answer. Is it running, and is the network there?'
  }
}

/** `onSent` is told the messageId, once it is stored. */
export function SendFromHere({ source, onSent, label }: { source: Schemas['Source']; onSent: (messageId: string) => void; label: string }) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const writeKey = source.writeKeys.at(-1)
  if (writeKey === undefined) return null
  const click = async (): Promise<void> => {
    setBusy(true)
    const messageId = newMessageId()
    const refused = await send(writeKey, messageId)
    setProblem(refused)
    setBusy(false)
    if (refused === null) onSent(messageId)
  }
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Button variant="default" loading={isBusy} onClick={() => void click()}>
          {label}
        </Button>
        <Text size="sm" c="dimmed" style={{ flex: '1 1 200px' }}>
          A real track call with the event “Hello Switchyard” of user u-1. It is stored and delivered like any other.
        </Text>
      </Group>
      {problem !== null && (
        <Alert color="red" role="alert" title="It was not accepted">
          {problem}
        </Alert>
      )}
    </Stack>
  )
}
