// The request of a delivery as it was sent: headers, body, and a curl command. The signing secrets never leave the service.

import { Alert, Button, Code, Group, Stack, Table, Tabs, Text } from '@mantine/core'
import { useMemo } from 'react'
import type { Answer } from '../api/client.ts'
import { CopyTextButton, Json } from '../components/copyable.tsx'
import { SmallButton, SmallNote, ViewLink } from '../components/styled.tsx'
import { useSession } from '../session/session.tsx'
import { BODY_FILE, curlOf, signaturesIn } from '../text/curl.ts'
import { bytes } from '../text/format.ts'
import { parsedJson } from '../text/json-tokens.ts'
import { changeSearch, useSearchState } from '../url/url-state.ts'

type Delivery = Answer<'GET /api/deliveries/{id}'>
type Request = NonNullable<Delivery['request']>

const TABS = ['body', 'headers', 'curl'] as const

/** `url` is null if it is not known. */
export function RequestView({ request, url, method = 'POST' }: { request: Request; url: string | null; method?: string }) {
  const [params] = useSearchState()
  const { mayEdit } = useSession()
  const { headers, body, note } = request
  const requested = params.get('request')
  const tab = TABS.find((each) => each === requested) ?? 'body'
  const curl = useMemo(() => (url === null ? null : curlOf({ method, url, headers, body })), [method, url, headers, body])
  const signatures = signaturesIn(headers)
  return (
    <Stack gap="sm">
      {note !== null && (
        <Alert color="gray" variant="light" p="xs">
          {note}
        </Alert>
      )}
      <Tabs
        value={tab}
        onChange={(value) => changeSearch({ request: value === 'body' ? null : value }, { replace: true })}
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value="body">Body</Tabs.Tab>
          <Tabs.Tab value="headers">Headers</Tabs.Tab>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="body" pt="sm">
          <Body text={body} />
        </Tabs.Panel>
        <Tabs.Panel value="headers" pt="sm">
          <Headers headers={headers} />
        </Tabs.Panel>
        <Tabs.Panel value="curl" pt="sm">
          {curl === null ? (
            <Text size="sm">The URL is not known: the request was not sent yet, and the destination could not be loaded.</Text>
          ) : (
            <Stack gap="sm">
              <Group gap="xs">
                <CopyTextButton text={curl.command} label="Copy as curl" size="xs" variant="filled" />
                {curl.bodyFile !== null && <SaveButton name={BODY_FILE} text={body} />}
              </Group>
              {curl.bodyFile !== null && (
                <Text size="sm">
                  The body is too long for a command line. Save it as {BODY_FILE} and run the command in the same folder.
                </Text>
              )}
              {!mayEdit && (
                <Text size="sm">
                  Signatures, the values of the destination's own headers and the values in the URL's query string are hidden from viewers.
                  Replace each (hidden) with the real value.
                </Text>
              )}
              <Code
                block
                tabIndex={0}
                role="region"
                aria-label="curl command"
                style={{ maxHeight: 320, overflow: 'auto', whiteSpace: 'pre' }}
              >
                {curl.command}
              </Code>
            </Stack>
          )}
        </Tabs.Panel>
      </Tabs>
      {signatures.length === 0 ? (
        <SmallNote>The request is not signed: the destination has no secret.</SmallNote>
      ) : (
        <SmallNote>
          {signatures.map(({ header, formula }) => `${header} is ${formula}. `).join('')}
          Viewers cannot see signatures. Secrets are never shown.
          {signatures.some(({ header }) => header === 'webhook-signature') &&
            ' A receiver that checks webhook-timestamp rejects the curl command after a few minutes; a replay is signed again.'}{' '}
          <ViewLink to="/signature" size="xs">
            Check a signature
          </ViewLink>
        </SmallNote>
      )}
    </Stack>
  )
}

/** Formatted for reading, or the exact bytes, which are needed to check the signature. */
function Body({ text }: { text: string }) {
  const [params] = useSearchState()
  const isRaw = params.get('body') === 'raw'
  const value = useMemo(() => parsedJson(text), [text])
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Button
          size="compact-sm"
          variant={isRaw ? 'default' : 'light'}
          aria-pressed={!isRaw}
          onClick={() => changeSearch({ body: null }, { replace: true })}
        >
          Formatted
        </Button>
        <Button
          size="compact-sm"
          variant={isRaw ? 'light' : 'default'}
          aria-pressed={isRaw}
          onClick={() => changeSearch({ body: 'raw' }, { replace: true })}
        >
          Raw
        </Button>
      </Group>
      {isRaw || value === undefined ? <Json text={text} label="the raw body" /> : <Json value={value} label="the body" />}
    </Stack>
  )
}

function Headers({ headers }: { headers: Readonly<Record<string, string>> }) {
  return (
    <Table.ScrollContainer minWidth={0} type="native" tabIndex={0} role="region" aria-label="Headers of the request">
      <Table verticalSpacing={4} fz="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th>Value</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {Object.entries(headers).map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Td style={{ whiteSpace: 'nowrap', verticalAlign: 'top' }}>{name}</Table.Td>
              <Table.Td style={{ overflowWrap: 'anywhere' }} ff="monospace">
                {value}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function SaveButton({ name, text }: { name: string; text: string }) {
  const save = (): void => {
    const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
    const link = document.createElement('a')
    link.href = address
    link.download = name
    link.click()
    URL.revokeObjectURL(address)
  }
  return (
    <SmallButton onClick={save}>
      Save {name} ({bytes(new TextEncoder().encode(text).length)})
    </SmallButton>
  )
}
