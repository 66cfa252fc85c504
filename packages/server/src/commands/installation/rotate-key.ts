// `switchyard rotate-key`: re-encrypts the stored secrets with a new key while the service is stopped. The work is done by maintenance.ts.
// A key is printed only if the operator has to keep it.

import { counted } from '../../api/counted.ts'
import type { Rotated } from '../../installation/maintenance.ts'
import { keyProblem } from '../../secrets/key-strength.ts'
import { generateSecretKey } from '../../secrets/secret-box.ts'
import { type Call, type Command, EXIT, UsageProblem } from '../line/command.ts'
import { showResult } from '../line/listing.ts'
import { localConfig, maintain } from './local-installation.ts'

export const rotateKey: Command = {
  name: 'rotate-key',
  summary: 'Re-encrypt stored secrets with a new key (stop all nodes of the service first)',
  details:
    'If the key is in the .key file next to a SQLite store, the command generates a new key and replaces the file; the key is not printed. If the key is in SWITCHYARD_SECRET_KEY, set SWITCHYARD_NEW_SECRET_KEY to the new key (--generate prints one), run the command, and then start the service with the new key in SWITCHYARD_SECRET_KEY. With PostgreSQL the key is always in SWITCHYARD_SECRET_KEY, the same for every node: stop all nodes first.\n\n' +
    'If the command is interrupted, either the old key or the new key decrypts all secrets. Backups made before the rotation need the old key.',
  flags: {
    store: {
      placeholder: 'ADDRESS',
      description: 'The store whose secrets to re-encrypt.',
      defaultText: 'sqlite:./data/switchyard.db',
      variable: 'SWITCHYARD_STORE',
    },
    'end-tokens': {
      placeholder: null,
      description:
        'Also invalidate all dashboard sessions and OAuth access tokens, by replacing the keys that sign them. Use this flag if someone may have copied the store and its key.',
    },
    generate: { placeholder: null, description: 'Print a new key for SWITCHYARD_NEW_SECRET_KEY without changing anything.' },
  },
  examples: ['switchyard rotate-key', 'SWITCHYARD_NEW_SECRET_KEY=… switchyard rotate-key'],
  async run(call) {
    if (call.has('generate')) {
      const key = generateSecretKey()
      showResult(call, { key }, key)
      return EXIT.ok
    }
    const { store, secretKey } = localConfig(call)
    const newKey = call.env['SWITCHYARD_NEW_SECRET_KEY'] || null
    if (secretKey !== null && newKey === null)
      throw new UsageProblem(
        'The current key is in SWITCHYARD_SECRET_KEY, so you have to provide the new one. Run `switchyard rotate-key --generate` to print a new key, save it, set SWITCHYARD_NEW_SECRET_KEY to it, and run this command again.',
      )
    const weak = newKey === null ? null : keyProblem('SWITCHYARD_NEW_SECRET_KEY', newKey)
    if (weak !== null) throw new UsageProblem(weak)
    const endTokens = call.has('end-tokens')
    const rotated = await maintain(({ rotateSecretKey }) => rotateSecretKey({ store, oldKey: secretKey, newKey, endTokens }))
    showResult(call, rotated, () => showRotated(call, rotated, endTokens))
    return EXIT.ok
  },
}

function showRotated({ out }: Call, { secrets, keyFile }: Rotated, endTokens: boolean): void {
  out.line(`Re-encrypted ${counted(secrets, 'secret')} with the new key.`)
  out.line(
    keyFile === null
      ? 'From now on, start the service with the new key in SWITCHYARD_SECRET_KEY.'
      : `The new key is in ${keyFile}, readable only by its owner. Start the service as before.`,
  )
  if (endTokens)
    out.line(
      'All earlier dashboard sessions and OAuth access tokens are now rejected. Log in to the dashboard again; clients request new tokens automatically.',
    )
  out.remark('Backups made before the rotation need the old key. Make a new backup now.')
}
