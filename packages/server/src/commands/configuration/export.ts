// `switchyard export`: writes the configuration to one YAML file that can be kept in git. Secrets appear only as references.

import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { configurationOf, configurationText, hasMaskedKeys, KINDS, NOUNS, sameNames } from '../../api/configuration-export.ts'
import { type Command, CommandProblem, EXIT, UsageProblem } from '../line/command.ts'
import { readInstalled } from './configuration-file.ts'

export const exportCommand: Command = {
  name: 'export',
  summary: 'Write the configuration to a YAML file, without secrets',
  details:
    'The file contains sources, destinations and OAuth applications in a stable order, so that git shows only real changes. Secrets are replaced by references to environment variables, and so are all header values and all query values of URLs, because they may be credentials.\n\nWrite keys are included: they are visible in every page and app that sends messages, and a copy of the installation needs them. Use --without-keys to leave them out.',
  arguments: [{ name: 'FILE', description: 'The file to write. Without it, the configuration is written to stdout.', optional: true }],
  flags: {
    'without-keys': { placeholder: null, description: 'Leave out the write keys.' },
    schema: { placeholder: null, description: 'Write the JSON Schema of the file instead.' },
  },
  examples: ['switchyard export switchyard.yaml', 'switchyard export --schema > switchyard.schema.json'],
  async run(call) {
    const installed = await readInstalled(call.api)
    const { file, variables } = configurationOf(installed, { withKeys: !call.has('without-keys') })
    if (!call.has('without-keys') && installed.entries.sources.some(hasMaskedKeys))
      call.out.remark('The file has no write keys, because the control token has the role viewer, which does not see them.')
    const problem = sameNames(file)
    if (problem !== null) throw new CommandProblem(problem)
    const path = call.arguments[0]
    const text = call.has('schema') ? `${JSON.stringify(installed.document, null, 2)}\n` : await configurationText(file)
    if (path === undefined || path === '-') {
      if (call.json && !call.has('schema')) call.out.json(file)
      else call.out.text(text.trimEnd())
      return EXIT.ok
    }
    try {
      // The file contains write keys, so only its owner may read it. A leftover of an earlier attempt may be readable by others, so it is removed first.
      rmSync(`${path}.new`, { force: true })
      writeFileSync(`${path}.new`, text, { mode: 0o600, flag: 'wx', flush: true })
      renameSync(`${path}.new`, path)
    } catch (error) {
      throw new UsageProblem(`Cannot write ${path}: ${(error as Error).message}.`)
    }
    if (call.json) call.out.json({ file: path, variables })
    else {
      call.out.line(
        `Wrote ${path}: ${KINDS.map((kind) => `${file[kind].length} ${NOUNS[kind]}${file[kind].length === 1 ? '' : 's'}`).join(', ')}.`,
      )
      if (variables.length > 0)
        call.out.remark(`To apply it to another installation, set these environment variables: ${variables.join(', ')}.`)
    }
    return EXIT.ok
  },
}
