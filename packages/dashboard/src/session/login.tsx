// The login page: single sign-on first, if it is set up, and the control token below it. Both return to the page that was opened. What went wrong at
// the identity provider comes as a code in the address, so nobody can put a text of their own on this page.

import { Alert, Anchor, Button, Center, Code, Divider, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useState } from 'react'
import { type ApiProblem, call } from '../api/client.ts'
import { useApi } from '../api/queries.ts'
import { entered, Form } from '../components/inputs.tsx'
import { Loading } from '../components/page.tsx'
import { Note, SmallNote } from '../components/styled.tsx'
import { loginAddress, problemOf } from './login-address.ts'

export function Login({ hasExpired, onLogin }: { hasExpired: boolean; onLogin: () => void }) {
  useDocumentTitle('Log in · Switchyard')
  const methods = useApi('GET /api/login/methods', {})
  const failure = problemOf(window.location.search)
  const oidc = methods.data?.oidc ?? null
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w={440} maw="100%">
        <Stack>
          <Title order={1} size="h2">
            Switchyard
          </Title>
          {failure !== null ? (
            <LoginProblem {...failure} />
          ) : (
            hasExpired && <Alert color="blue">Your session has ended. Log in again to return to this page.</Alert>
          )}
          {methods.isPending && methods.error === null ? (
            <Loading lines={3} />
          ) : (
            <>
              {oidc !== null && (
                <>
                  {oidc.problem !== undefined && oidc.problem.reason !== failure?.reason && <LoginProblem {...oidc.problem} />}
                  <Button component="a" href={loginAddress(window.location)}>
                    Log in with {oidc.name}
                  </Button>
                  <Divider label="or with a control token" />
                </>
              )}
              <TokenForm isOnly={oidc === null} onLogin={onLogin} />
            </>
          )}
        </Stack>
      </Paper>
    </Center>
  )
}

function LoginProblem({ message, advice }: { message: string; advice: string }) {
  return (
    <Alert color="orange" role="alert" title={message}>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {advice}
      </Text>
    </Alert>
  )
}

function TokenForm({ isOnly, onLogin }: { isOnly: boolean; onLogin: () => void }) {
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await call('POST /api/login', { body: { token: token.trim() } })
      onLogin()
    } catch (error) {
      const { status, message } = error as ApiProblem
      setProblem(status === 401 ? 'Invalid token. Enter a control token of this service.' : message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Form onSubmit={submit}>
      <Stack>
        {isOnly && (
          <Note>
            Enter a control token: the one that the service printed on its first start, the value of <Code>SWITCHYARD_ADMIN_TOKEN</Code>, or
            one that was created in Settings.
          </Note>
        )}
        <PasswordInput
          label="Control token"
          {...entered(token, setToken)}
          autoComplete="current-password"
          autoFocus={isOnly}
          error={problem}
          required
        />
        <Button type="submit" variant={isOnly ? 'filled' : 'default'} loading={isBusy} disabled={token.trim() === ''}>
          Log in
        </Button>
        <SmallNote>
          Lost your token? Set <Code>SWITCHYARD_ADMIN_TOKEN</Code> to a new one and restart the service.{' '}
          <Anchor href="/docs" size="xs" underline="always">
            Read the documentation
          </Anchor>
        </SmallNote>
      </Stack>
    </Form>
  )
}
