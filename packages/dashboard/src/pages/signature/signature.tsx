// The signature checker: takes a body, its headers and a secret, and shows whether the signature is valid or what differs. Everything is
// computed in the browser. Nothing is sent, stored or put into the address, so that real secrets can be pasted.

import { Alert, Badge, Button, Code, FileButton, Group, List, Paper, PasswordInput, SimpleGrid, Stack, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { Copyable } from '../../components/copyable.tsx'
import { entered, SmallCodeArea } from '../../components/inputs.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { LongText, SmallButton, SmallNote, SmallStrong, SmallTitle, Strong } from '../../components/styled.tsx'
import { bytes as byteCount } from '../../text/format.ts'
import { type Checked, type CheckResult, check } from './find-mistakes.ts'
import { base64, canCompute, hex, hmac, isBatchOfSeveral, standardDigest, utf8 } from './verify-schemes.ts'

interface Request {
  text: string
  /** The body, instead of the text. */
  file: { name: string; bytes: Uint8Array } | null
  headers: string
  secret: string
}

const NOTHING: Request = { text: '', file: null, headers: '', secret: '' }

/** No request of the service is larger, and a larger file would block the browser. */
const MAX_FILE_BYTES = 20_000_000

export default function SignaturePage() {
  const [request, setRequest] = useState(NOTHING)
  const { text, file, headers, secret } = request
  const set = (changes: Partial<Request>): void => setRequest((before) => ({ ...before, ...changes }))
  const isSupported = canCompute()
  const isComplete = (text !== '' || file !== null) && headers.trim() !== '' && secret !== ''
  const result = useResult(request, isSupported && isComplete)
  return (
    <Page
      title="Signature checker"
      about="Find out why a receiver rejects a signature. Runs entirely in this browser: nothing is sent or stored."
      actions={
        <>
          <SmallButton onClick={() => void exampleRequest(Date.now()).then(setRequest)} disabled={!isSupported}>
            Load example
          </SmallButton>
          <SmallButton onClick={() => setRequest(NOTHING)} disabled={text === '' && headers === '' && secret === '' && file === null}>
            Clear
          </SmallButton>
        </>
      }
    >
      {!isSupported && (
        <Alert color="orange" title="Signatures cannot be computed on this page">
          Browsers offer WebCrypto only over https and on localhost, and this page was loaded over http. Open the dashboard over https or
          through a tunnel (<Code>ssh -L 8080:localhost:8080 HOST</Code>), or use <Code>verify</Code> from <Code>@switchyard/webhook</Code>.
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap="md" miw={0}>
          <BodyField text={text} file={file} onChange={set} />
          <SmallCodeArea
            label="Headers"
            description="All request headers, or only X-Signature, or webhook-id, webhook-timestamp and webhook-signature. As lines, JSON or curl output."
            placeholder={'X-Signature: cad3b811…'}
            {...entered(headers, (headers) => set({ headers }))}
            minRows={4}
            maxRows={12}
            autoComplete="off"
          />
          <PasswordInput
            label="Secret"
            description="For X-Signature the shared secret, for webhook-signature a signing secret (whsec_…) of the destination."
            {...entered(secret, (secret) => set({ secret }))}
            autoComplete="off"
            data-1p-ignore
            data-lpignore="true"
            visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret' }}
          />
        </Stack>
        <Stack gap="md" miw={0} role="status" aria-label="Result">
          {result === null ? (
            <Paper withBorder p="md">
              <Empty title={isComplete && isSupported ? 'Checking …' : 'Enter body, headers and secret'}>
                {isComplete
                  ? undefined
                  : 'If the signature does not match, common mistakes are tried: a trailing line break, reformatted JSON, white space around the secret, a truncated header, an old timestamp.'}
              </Empty>
            </Paper>
          ) : (
            <Result {...result} />
          )}
        </Stack>
      </SimpleGrid>
      <About />
    </Page>
  )
}

interface ResultProps {
  result: CheckResult
  body: Uint8Array
}

/** Null until the request as it is now has been checked. */
function useResult({ text, file, headers, secret }: Request, isReady: boolean): ResultProps | null {
  const [result, setResult] = useState<ResultProps | null>(null)
  useEffect(() => {
    setResult(null)
    if (!isReady) return
    let isCancelled = false
    // Waits for a pause in typing, because trying the variants of a large body takes a moment.
    const timer = setTimeout(() => {
      const body = file?.bytes ?? utf8(text)
      void check({ body, headers, secret, nowMs: Date.now() }).then((found) => {
        if (!isCancelled) setResult({ result: found, body })
      })
    }, 200)
    return () => {
      isCancelled = true
      clearTimeout(timer)
    }
  }, [text, file, headers, secret, isReady])
  return result
}

function BodyField({ text, file, onChange }: Pick<Request, 'text' | 'file'> & { onChange: (changes: Partial<Request>) => void }) {
  const [problem, setProblem] = useState<string | null>(null)
  const choose = async (chosen: File | null): Promise<void> => {
    setProblem(null)
    if (chosen === null) return
    if (chosen.size > MAX_FILE_BYTES)
      setProblem(`${chosen.name} is too large (${byteCount(chosen.size)}). Choose a file of at most ${byteCount(MAX_FILE_BYTES)}.`)
    else onChange({ file: { name: chosen.name, bytes: new Uint8Array(await chosen.arrayBuffer()) } })
  }
  return (
    <>
      {file === null ? (
        <SmallCodeArea
          label="Body"
          description="The exact request body, before parsing."
          placeholder={'{"version":1,"type":"track",…}'}
          {...entered(text, (text) => onChange({ text }))}
          minRows={7}
          maxRows={16}
          autoComplete="off"
        />
      ) : (
        <Paper withBorder p="sm">
          <Group justify="space-between" gap="xs">
            <Stack gap={0} miw={0}>
              <Text size="sm" fw={500}>
                Body
              </Text>
              <LongText>
                {file.name}, {byteCount(file.bytes.length)}
              </LongText>
            </Stack>
            <SmallButton onClick={() => onChange({ file: null })}>Paste instead</SmallButton>
          </Group>
        </Paper>
      )}
      <Group gap="xs">
        <FileButton onChange={(chosen) => void choose(chosen)}>
          {(props) => (
            <Button {...props} variant="subtle" size="compact-sm">
              Choose a file
            </Button>
          )}
        </FileButton>
        <SmallNote>Preserves every byte. Pasting changes CR LF to LF.</SmallNote>
      </Group>
      {problem !== null && (
        <Text size="sm" c="red" role="alert">
          {problem}
        </Text>
      )}
    </>
  )
}

const NAMES = { 'x-signature': 'X-Signature', 'standard-webhooks': 'Standard Webhooks' } as const

function Result({ result: { headers, schemes }, body }: ResultProps) {
  return (
    <>
      {schemes.length === 0 && (
        <Alert color="orange" title="No signature found in these headers">
          Expected X-Signature, or webhook-id, webhook-timestamp and webhook-signature. A destination without a secret does not sign its
          requests: set a secret in its settings.
        </Alert>
      )}
      {[...schemes]
        .sort((a, b) => Number(a.needsOtherSecret) - Number(b.needsOtherSecret))
        .map((checked) => (
          <SchemeResult key={checked.scheme} checked={checked} body={body} />
        ))}
      {headers.guessed !== null && <SmallNote>The value has no header name; it was treated as {headers.guessed}.</SmallNote>}
    </>
  )
}

function SchemeResult({ checked: { scheme, verdict, mistakes, needsOtherSecret }, body }: { checked: Checked; body: Uint8Array }) {
  if (needsOtherSecret)
    return (
      <Alert color="gray" variant="light" title={`${NAMES[scheme]}: not checked`}>
        This signature uses another secret. To check it, enter{' '}
        {scheme === 'x-signature' ? 'the shared secret' : 'a signing secret (whsec_…)'} of the destination.
      </Alert>
    )
  const isValid = verdict.code === 'valid'
  const isCorrectButRejected = !isValid && verdict.matches
  const color = isValid ? 'teal' : isCorrectButRejected ? 'yellow' : 'red'
  const verdictText = isValid ? 'valid' : isCorrectButRejected ? 'signature correct, request rejected' : 'does not match'
  const isProved = mistakes.some((mistake) => mistake.isProved)
  return (
    <Alert color={color} variant="outline" title={`${NAMES[scheme]}: ${verdictText}`}>
      <Stack gap="sm">
        {isValid && (
          <Text size="sm">
            {scheme === 'x-signature' && isBatchOfSeveral(body)
              ? 'The first message is unchanged. X-Signature does not cover the other messages of a batch: they are verified only if the Standard Webhooks signature is also valid.'
              : scheme === 'x-signature'
                ? 'The body is unchanged, and the secret is correct.'
                : 'Body, id and timestamp are unchanged, the secret is correct, and the timestamp is recent enough.'}
          </Text>
        )}
        {!isValid && mistakes.length > 0 && (
          <>
            <Strong>{isProved ? (verdict.matches ? 'Problem:' : 'Cause:') : 'No common mistake matches. Possible causes:'}</Strong>
            <List size="sm" spacing="xs" type="ordered">
              {mistakes.map(({ title, advice, isProved: isCertain }) => (
                <List.Item key={title}>
                  <Group gap={6}>
                    <Strong span>{title}</Strong>
                    {isCertain && (
                      <Badge size="xs" variant="outline" color="gray" tt="none">
                        certain
                      </Badge>
                    )}
                  </Group>
                  <Text size="sm">{advice}</Text>
                </List.Item>
              ))}
            </List>
          </>
        )}
        {!verdict.matches && <Digests received={verdict.received} computed={verdict.computed} />}
        {!isValid && (
          <SmallNote>
            The package @switchyard/webhook rejects this request with <Code>{verdict.code}</Code>
            {verdict.header !== undefined && <> for {verdict.header}</>}.
          </SmallNote>
        )}
      </Stack>
    </Alert>
  )
}

function Digests({ received, computed }: { received: readonly string[]; computed: string | null }) {
  return (
    <Stack gap={6}>
      <SmallStrong>Received</SmallStrong>
      {received.length === 0 ? (
        <Text size="sm">none</Text>
      ) : (
        received.map((value, at) => <Copyable key={at} text={value} label="the received signature" />)
      )}
      {computed !== null && (
        <>
          <SmallStrong>Computed from body and secret</SmallStrong>
          <Copyable text={computed} label="the computed signature" />
        </>
      )}
    </Stack>
  )
}

function About() {
  return (
    <Paper withBorder p="md">
      <Stack gap="xs">
        <SmallTitle order={2}>Signature formats</SmallTitle>
        <Text size="sm">
          <b>X-Signature</b> is the HMAC-SHA1 of the body with the shared secret as the key, in lower-case hex. For a batch, it covers only
          the first message.
        </Text>
        <Text size="sm">
          <b>Standard Webhooks</b> is the HMAC-SHA256 of <Code>id.timestamp.body</Code> in base64, prefixed with <Code>v1,</Code>. The key
          is the base64-decoded part of the secret after <Code>whsec_</Code>. During a key rotation the header has two signatures, and one
          match is enough. Requests more than 300 seconds old are rejected.
        </Text>
        <Text size="sm">
          In Node.js, use <Code>verify(request, {'{ signingSecrets }'})</Code> from <Code>@switchyard/webhook</Code>.
        </Text>
      </Stack>
    </Paper>
  )
}

async function exampleRequest(nowMs: number): Promise<Request> {
  const at = new Date(nowMs).toISOString()
  const text = JSON.stringify({
    version: 1,
    type: 'track',
    userId: 'u-1',
    event: 'Order Completed',
    properties: { total: 12.5 },
    messageId: 'm-1',
    timestamp: at,
    receivedAt: at,
  })
  const key = crypto.getRandomValues(new Uint8Array(32))
  const timestamp = String(Math.floor(nowMs / 1_000))
  const lines = [
    `X-Signature: ${hex(await hmac('SHA-1', utf8('example shared secret'), utf8(text)))}`,
    'webhook-id: msg_example',
    `webhook-timestamp: ${timestamp}`,
    `webhook-signature: v1,${await standardDigest(key, 'msg_example', timestamp, utf8(text))}`,
  ]
  return { text, file: null, headers: lines.join('\n'), secret: `whsec_${base64(key)}` }
}
