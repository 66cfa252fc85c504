// Colours and sizes, and what each state of a delivery looks like everywhere: by colour and by word, never by colour alone.

import { createTheme } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'blue',
  defaultRadius: 'md',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
  cursorType: 'pointer',
  // Dark enough on white, light enough on dark: what axe-core asks of small text.
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  // Has no text of its own: of modals, alerts and notifications.
  components: { CloseButton: { defaultProps: { 'aria-label': 'Close' } } },
  // Where white letters fall below 4.5:1, black ones are above it.
  luminanceThreshold: 0.18,
})

/** Of the style elements that are made at run time: the page's policy takes no other. */
export function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
}

export const STATE_COLORS = { pending: 'blue', delivered: 'teal', failed: 'red', expired: 'orange', cancelled: 'gray' } as const
export type DeliveryState = keyof typeof STATE_COLORS
