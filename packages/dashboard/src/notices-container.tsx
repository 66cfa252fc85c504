// Loaded by notices.tsx with the first notice.

import '@mantine/notifications/styles.css'
import { Notifications } from '@mantine/notifications'

export default function NoticesContainer() {
  // Long enough to be read, also on a slow machine.
  return <Notifications position="top-right" autoClose={8_000} />
}
