// Loaded by notices.tsx with the first notice.

import '@mantine/notifications/styles.css'
import { Notifications } from '@mantine/notifications'

export default function NoticesContainer() {
  return <Notifications position="top-right" />
}
