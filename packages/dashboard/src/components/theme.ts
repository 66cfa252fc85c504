// Colours, fonts and sizes, and the colour of each delivery state. A colour never appears without the name of the state.

import { createTheme } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'blue',
  defaultRadius: 'md',
  fontFamily: '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
  cursorType: 'pointer',
  // Without it, dialogs stay for 200 ms after they were closed, although style.css disables their transitions.
  respectReducedMotion: true,
  // Enough contrast for small text on white and on dark, as axe-core requires.
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  // The button that closes modals, alerts and notifications has no text.
  components: { CloseButton: { defaultProps: { 'aria-label': 'Close' } } },
  // Backgrounds lighter than this get black text: white text on them would have a contrast below 4.5:1.
  luminanceThreshold: 0.18,
})

/** The nonce for style elements that are created at run time: the content security policy allows no others. */
export function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
}

export const STATE_COLORS = { pending: 'blue', delivered: 'teal', failed: 'red', expired: 'orange', cancelled: 'gray' } as const
export type DeliveryState = keyof typeof STATE_COLORS
