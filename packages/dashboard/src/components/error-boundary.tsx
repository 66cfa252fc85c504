// Around a view: what breaks in it is said in its place, and the frame with the way elsewhere stays. A view whose file is no longer there
// is of a build that has been replaced since the page was loaded: loaded anew, it is right again.

import { Alert, Button, Code, Group, Stack, Text } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { Page } from './page.tsx'

/** As browsers say that a module could not be had. */
const NOT_LOADED = /dynamically imported module|module script failed|preload CSS/i

interface State {
  error: Error | null
}

/** `at`: the address. Another one begins anew. */
export class ErrorBoundary extends Component<{ at: string; children: ReactNode }, State> {
  override state: State = { error: null }

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override componentDidUpdate({ at }: { at: string }): void {
    if (at !== this.props.at && this.state.error !== null) this.setState({ error: null })
  }

  override render(): ReactNode {
    const { error } = this.state
    if (error === null) return this.props.children
    const isNotLoaded = NOT_LOADED.test(error.message)
    return (
      <Page title={isNotLoaded ? 'This page could not be loaded' : 'This page broke'}>
        <Alert
          color="red"
          role="alert"
          title={isNotLoaded ? 'The service does not answer, or was updated' : 'That is a defect of the dashboard'}
        >
          <Stack gap="sm">
            <Text size="sm">
              {isNotLoaded
                ? 'A part of the dashboard could not be had. Reload it when the service answers.'
                : 'Your messages are not affected: they are accepted and delivered as before. Reload; if it breaks again, please report this line.'}
            </Text>
            {!isNotLoaded && <Code style={{ overflowWrap: 'anywhere' }}>{error.message}</Code>}
            <Group>
              <Button size="xs" variant="light" color="red" onClick={() => window.location.reload()}>
                Reload
              </Button>
            </Group>
          </Stack>
        </Alert>
      </Page>
    )
  }
}
