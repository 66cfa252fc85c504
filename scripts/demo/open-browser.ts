// Opens an address in the user's browser if there is a display. Never fails: the address is also printed.

import { spawn } from 'node:child_process'

/** Returns whether it tried to open a browser. */
export function openBrowser(address: string, env = process.env, platform = process.platform): boolean {
  const command = opener(env, platform)
  if (command === null) return false
  const [file, ...args] = command as [string, ...string[]]
  spawn(file, [...args, address], { detached: true, stdio: 'ignore' })
    .on('error', () => {})
    .unref()
  return true
}

/** The command that opens an address, or null if nobody would see the browser: in CI, over SSH, or without a display. */
export function opener(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | null {
  if (env['CI'] || env['SSH_CONNECTION']) return null
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['cmd', '/c', 'start', '']
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : null
}
