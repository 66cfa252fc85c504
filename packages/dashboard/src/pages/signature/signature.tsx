// The signature checker: a body, its headers and a secret go in, and it says valid or what differs. Everything is computed by the browser;
// nothing is sent, stored or put into the address, so that a real secret can be pasted.

import {
  Alert,
  Badge,
  Button,
  Code,
  FileButton,
  Group,
  List,
  Paper,
  PasswordInput,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  Title,
} from '@mantine/core'
import { useEffect, useState } from 'react'
import { Copyable } from '../../components/copyable.tsx'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/query-states.tsx'
import { bytes as byteCount } from '../../text/format.ts'
import { exampleRequest } from './example.ts'
import { type Checked, type CheckResult, check } from './find-mistakes.ts'
import { canCompute, isBatchOfSeveral, utf8 } from './verify-schemes.ts'

interface ChosenFile {
  name: string
  bytes: Uint8Array
}

/** More is no body of the service, and a browser would be busy with it. */
const MAX_FILE_BYTES = 20_000_000

export default function SignaturePage() {
  const [text, setText] = useState('')
  const [file, setFile] = useState<ChosenFile | null>(null)
  const [fileProblem, setFileProblem] = useState<string | null>(null)
  const [headers, setHeaders] = useState('')
  const [secret, setSecret] = useState('')
  const [result, setResult] = useState<{ result: CheckResult; body: Uint8Array } | null>(null)
  const isAble = canCompute()
  const isWhole = (text !== '' || file !== null) && headers.trim() !== '' && secret !== ''

  useEffect(() => {
    setResult(null)
    if (!isAble || !isWhole) return
    let isOver = false
    // Not for every letter: the variants of a large body take a moment.
    const timer = setTimeout(() => {
      const body = file?.bytes ?? utf8(text)
      void check({ body, headers, secret, nowMs: Date.now() }).then((found) => {
        if (!isOver) setResult({ result: found, body })
      })
    }, 200)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [text, file, headers, secret, isAble, isWhole])

  const choose = async (chosen: File | null): Promise<void> => {
    setFileProblem(null)
    if (chosen === null) return
    if (chosen.size > MAX_FILE_BYTES)
      setFileProblem(`${chosen.name} has ${byteCount(chosen.size)}; a body of the service is never so large.`)
    else setFile({ name: chosen.name, bytes: new Uint8Array(await chosen.arrayBuffer()) })
  }
  const fill = async (): Promise<void> => {
    const example = await exampleRequest(Date.now())
    setFile(null)
    setText(example.body)
    setHeaders(example.headers)
    setSecret(example.secret)
  }
  const clear = (): void => {
    setFile(null)
    setText('')
    setHeaders('')
    setSecret('')
  }

  return (
    <Page
      title="Signature checker"
      about="Your receiver refuses what the service sends? Paste what it received. All is computed in this browser: nothing is sent anywhere, kept, or put into the address."
      actions={
        <>
          <Button variant="default" size="xs" onClick={() => void fill()} disabled={!isAble}>
            Fill in an example
          </Button>
          <Button variant="default" size="xs" onClick={clear} disabled={text === '' && headers === '' && secret === '' && file === null}>
            Clear
          </Button>
        </>
      }
    >
      {!isAble && (
        <Alert color="orange" title="This browser does not compute digests on this page">
          Browsers offer WebCrypto only over https and on localhost, and this page came over plain http. Open the dashboard over https or
          through a tunnel (<Code>ssh -L 8080:localhost:8080 HOST</Code>), or use <Code>verify</Code> of packages/webhook.
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap="md" miw={0}>
          {file === null ? (
            <Textarea
              label="Body"
              description="Exactly as it was received, before any parser."
              placeholder={'{"version":1,"type":"track",…}'}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autosize
              minRows={7}
              maxRows={16}
              spellCheck={false}
              autoComplete="off"
              styles={MONO}
            />
          ) : (
            <Paper withBorder p="sm">
              <Group justify="space-between" gap="xs">
                <Stack gap={0} miw={0}>
                  <Text size="sm" fw={500}>
                    Body
                  </Text>
                  <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                    {file.name}, {byteCount(file.bytes.length)}
                  </Text>
                </Stack>
                <Button variant="default" size="xs" onClick={() => setFile(null)}>
                  Paste instead
                </Button>
              </Group>
            </Paper>
          )}
          <Group gap="xs">
            <FileButton onChange={(chosen) => void choose(chosen)}>
              {(props) => (
                <Button {...props} variant="subtle" size="compact-sm">
                  Read the body from a file
                </Button>
              )}
            </FileButton>
            <Text size="xs" c="dimmed">
              Keeps every byte; pasting changes CR LF to LF.
            </Text>
          </Group>
          {fileProblem !== null && (
            <Text size="sm" c="red" role="alert">
              {fileProblem}
            </Text>
          )}
          <Textarea
            label="Headers"
            description="All of the request, or only the signature: X-Signature, or webhook-id, webhook-timestamp and webhook-signature. As lines, as JSON, or as curl shows them."
            placeholder={'X-Signature: cad3b811…'}
            value={headers}
            onChange={(event) => setHeaders(event.currentTarget.value)}
            autosize
            minRows={4}
            maxRows={12}
            spellCheck={false}
            autoComplete="off"
            styles={MONO}
          />
          <PasswordInput
            label="Secret"
            description="The shared secret of the destination for X-Signature, a signing secret (whsec_…) for webhook-signature."
            value={secret}
            onChange={(event) => setSecret(event.currentTarget.value)}
            autoComplete="off"
            data-1p-ignore
            data-lpignore="true"
            visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret' }}
          />
        </Stack>
        <Stack gap="md" miw={0} role="status" aria-label="Result">
          {result === null ? (
            <Paper withBorder p="md">
              <Empty title={isWhole && isAble ? 'Checking' : 'Body, headers and secret, please'}>
                {isWhole
                  ? undefined
                  : 'It says valid, or tries the usual mistakes one by one and tells which it was: a line break at the end, JSON written anew, a secret with a blank, a header that was cut, a timestamp that is too old.'}
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

const MONO = { input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 'var(--mantine-font-size-xs)' } }

const NAMES = { 'x-signature': 'X-Signature', 'standard-webhooks': 'Standard Webhooks' } as const

function Result({ result: { headers, schemes }, body }: { result: CheckResult; body: Uint8Array }) {
  return (
    <>
      {schemes.length === 0 && (
        <Alert color="orange" title="There is no signature in these headers">
          Looked for X-Signature and for webhook-id, webhook-timestamp and webhook-signature. A destination without a secret sends none: set
          one where you edit it.
        </Alert>
      )}
      {schemes.map((checked) => (
        <SchemeResult key={checked.scheme} checked={checked} body={body} />
      ))}
      {headers.guessed !== null && (
        <Text size="xs" c="dimmed">
          There was no name before the value; it was read as {headers.guessed}.
        </Text>
      )}
    </>
  )
}

function SchemeResult({ checked: { scheme, verdict, mistakes, needsOtherSecret }, body }: { checked: Checked; body: Uint8Array }) {
  if (needsOtherSecret)
    return (
      <Alert color="gray" variant="outline" title={`${NAMES[scheme]}: made with another secret`}>
        The secret that you gave is that of the other signature.{' '}
        {scheme === 'x-signature' ? 'This one is made with the shared secret' : 'This one is made with a signing secret (whsec_…)'}: paste
        that one to check it too.
      </Alert>
    )
  const isValid = verdict.code === 'valid'
  const isRightButRefused = !isValid && verdict.matches
  const color = isValid ? 'teal' : isRightButRefused ? 'yellow' : 'red'
  const word = isValid ? 'valid' : isRightButRefused ? 'the signature is right, the request is refused' : 'does not match'
  const isProved = mistakes.some((mistake) => mistake.isProved)
  return (
    <Alert color={color} variant="outline" title={`${NAMES[scheme]}: ${word}`}>
      <Stack gap="sm">
        {isValid && (
          <Text size="sm">
            {scheme === 'x-signature' && isBatchOfSeveral(body)
              ? 'The first message is unchanged. X-Signature does not cover the other messages of a batch: they are proven only if the Standard Webhooks signature is valid, too.'
              : scheme === 'x-signature'
                ? 'The body is as it was sent, and the secret is that of the destination.'
                : 'Body, id and time are as they were sent, the secret is that of the destination, and the time is close enough to now.'}
          </Text>
        )}
        {!isValid && mistakes.length > 0 && (
          <>
            <Text size="sm" fw={600}>
              {isProved
                ? verdict.matches
                  ? 'What is wrong:'
                  : 'What differs, found by trying:'
                : 'None of the usual mistakes explains it. What is left to look at:'}
            </Text>
            <List size="sm" spacing="xs" type="ordered">
              {mistakes.map(({ title, advice, isProved: isSure }) => (
                <List.Item key={title}>
                  <Group gap={6}>
                    <Text span size="sm" fw={600}>
                      {title}
                    </Text>
                    {isSure && (
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
          <Text size="xs" c="dimmed">
            A receiver with packages/webhook refuses this with <Code>{verdict.code}</Code>
            {verdict.header !== undefined && <> for {verdict.header}</>}.
          </Text>
        )}
      </Stack>
    </Alert>
  )
}

function Digests({ received, computed }: { received: readonly string[]; computed: string | null }) {
  return (
    <Stack gap={6}>
      <Text size="xs" fw={600}>
        In the header
      </Text>
      {received.length === 0 ? (
        <Text size="sm">nothing</Text>
      ) : (
        received.map((value, at) => <Copyable key={at} text={value} label="the received signature" />)
      )}
      {computed !== null && (
        <>
          <Text size="xs" fw={600}>
            Computed from this body and secret
          </Text>
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
        <Title order={2} size="h5">
          How they are made
        </Title>
        <Text size="sm">
          <b>X-Signature</b> is the HMAC-SHA1 of the body with the shared secret as text, in lower-case hex. Of a batch it is that of the
          first message alone.
        </Text>
        <Text size="sm">
          <b>Standard Webhooks</b> is the HMAC-SHA256 of <Code>id.timestamp.body</Code>, with the bytes that follow <Code>whsec_</Code> in
          base64 as the key, written as <Code>v1,</Code> and base64. While a secret is changed there are two of them in the header, and one
          that matches is enough. What is more than 300 seconds old is refused.
        </Text>
        <Text size="sm">
          In Node.js, <Code>verify(request, {'{ signingSecrets }'})</Code> of packages/webhook does all of it.
        </Text>
      </Stack>
    </Paper>
  )
}
