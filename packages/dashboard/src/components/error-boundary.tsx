// Shows an error in place of a page that failed to render, and keeps the navigation. If the code of a page cannot be loaded, the service
// is down or its build was replaced since the dashboard was loaded; a reload helps.

import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { Page } from './page.tsx'
import { LongCode } from './styled.tsx'

/** How browsers word that a module could not be loaded. */
const NOT_LOADED = /dynamically imported module|module script failed|preload CSS/i

interface State {
  error: Error | null
}

/** `at`: the current path. The error is cleared when it changes. */
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
      <Page title={isNotLoaded ? 'This page could not be loaded' : 'Something went wrong'}>
        <Alert
          color="red"
          role="alert"
          title={
            isNotLoaded
              ? 'The service is not responding or was updated'
              : 'This page could not be shown because of an error in the dashboard'
          }
        >
          <Stack gap="sm">
            <Text size="sm">
              {isNotLoaded
                ? 'Part of the dashboard could not be loaded. Check that the service is running, then reload the page.'
                : 'Messages are not affected: they are accepted and delivered as before. Reload the page. If the error comes back, please report it with this message:'}
            </Text>
            {!isNotLoaded && <LongCode>{error.message}</LongCode>}
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
