// The settings of the service, from the table that reads them.

import { flagOf, SETTINGS, type Setting } from '../../packages/server/src/config.ts'
import { code, heading, table } from './markdown.ts'

export function configPage(): string {
  const rows = Object.values(SETTINGS).map((setting: Setting<unknown>) => {
    const flag = setting.placeholder === null ? flagOf(setting) : `${flagOf(setting)} ${setting.placeholder}`
    return [
      code(setting.variable),
      code(flag),
      setting.defaultText,
      `${setting.description}${setting.secret ? ' This setting is a secret.' : ''}`,
    ]
  })
  return [
    heading('Settings', 'packages/server/src/config.ts'),
    'Each setting is an environment variable or a flag of `switchyard serve`. The flag overrides the variable, and an empty variable counts as not set.',
    'Other users of the same machine can see the flags of a process, so pass secrets in the environment.',
    'If a value is invalid, the service does not start and prints an error that names the setting.',
    '',
    table(['Variable', 'Flag', 'Default', 'Meaning'], rows),
    '',
  ].join('\n')
}
