// `switchyard rotate-key`: encrypts the stored secrets with another key, while the service does not run. The work is
// maintenance.ts's; a key is shown only where its keeping is the operator's.

import { generateSecretKey } from '../../secrets/secret-box.ts'
import { type Command, CommandProblem, EXIT } from '../line/command.ts'
import { localConfig } from './local-installation.ts'

export const rotateKey: Command = {
  name: 'rotate-key',
  summary: 'Encrypts stored secrets with another key; the service, every node of it, must be stopped',
  details:
    'Where the key is in the file beside the store, a new one is made and takes its place; it is not shown. Where it is in SWITCHYARD_SECRET_KEY, put the new one in SWITCHYARD_NEW_SECRET_KEY (--generate prints a good one), run this, and start the service with the new one as SWITCHYARD_SECRET_KEY. With PostgreSQL it is always there, the same for every node: stop all of them first.\n\n' +
    'Interrupted at any moment, the old key or the new one opens everything. Backups from before need the old key.',
  flags: {
    store: { placeholder: 'ADDRESS', sentence: 'The store.', usual: 'sqlite:./data/switchyard.db', variable: 'SWITCHYARD_STORE' },
    'end-tokens': {
      placeholder: null,
      sentence:
        'Also ends all dashboard sessions and all OAuth access tokens, by replacing the keys that sign them. Use it if somebody may have copied the store and its key.',
    },
    generate: { placeholder: null, sentence: 'Prints a new key for SWITCHYARD_NEW_SECRET_KEY, and changes nothing.' },
  },
  examples: ['switchyard rotate-key', 'SWITCHYARD_NEW_SECRET_KEY=… switchyard rotate-key'],
  async run(call) {
    if (call.has('generate')) {
      const key = generateSecretKey()
      if (call.json) call.out.json({ key })
      else call.out.line(key)
      return EXIT.ok
    }
    const { store, secretKey } = localConfig(call)
    const newKey = call.env['SWITCHYARD_NEW_SECRET_KEY'] || null
    if (secretKey !== null && newKey === null)
      throw new CommandProblem(
        'The key is in SWITCHYARD_SECRET_KEY, so the new one is yours to keep: `switchyard rotate-key --generate` prints one. Keep it, set it as SWITCHYARD_NEW_SECRET_KEY, and run this again.',
        EXIT.usage,
      )
    const { MaintenanceProblem, rotateSecretKey } = await import('../../installation/maintenance.ts')
    try {
      const { secrets, keyFile } = await rotateSecretKey({ store, oldKey: secretKey, newKey, endTokens: call.has('end-tokens') })
      if (call.json) call.out.json({ secrets, keyFile })
      else {
        call.out.line(`${secrets === 1 ? '1 secret is' : `${secrets} secrets are`} encrypted with the new key.`)
        call.out.line(
          keyFile === null
            ? 'From now on start the service with the new key as SWITCHYARD_SECRET_KEY.'
            : `The new key is in ${keyFile}, for its owner alone. Start the service as before.`,
        )
        if (call.has('end-tokens'))
          call.out.line(
            'Earlier dashboard sessions and OAuth access tokens are now refused. Log in to the dashboard again; clients request new tokens by themselves.',
          )
        call.out.remark('Backups from before need the old key. Make a new backup.')
      }
      return EXIT.ok
    } catch (error) {
      if (error instanceof MaintenanceProblem) throw new CommandProblem(error.message, EXIT.failed, { cause: error })
      throw error
    }
  },
}
