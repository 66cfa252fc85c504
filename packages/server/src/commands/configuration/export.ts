// `switchyard export`: the configuration as one YAML file that can live in git. Secrets are in it as references only.

import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { configurationOf, configurationText, KINDS, NOUNS, sameNames } from '../../api/configuration-export.ts'
import { type Command, CommandProblem, EXIT } from '../line/command.ts'
import { readInstalled } from './configuration-file.ts'

export const exportCommand: Command = {
  name: 'export',
  summary: 'Writes the configuration as one YAML file, without secrets',
  details:
    'Sources, destinations and OAuth applications, in a stable order, so that git shows only real changes. Secrets are replaced by the name of a variable, and so is every header value and every query value of a URL, because it may be a credential.\n\nWrite keys are in it: they are in every page and app that sends, and a copy of the installation needs them. --without-keys leaves them out.',
  arguments: [{ name: 'FILE', sentence: 'Where to write it; stdout without.', optional: true }],
  flags: {
    'without-keys': { placeholder: null, sentence: 'Leaves write keys out.' },
    schema: { placeholder: null, sentence: 'Writes the JSON Schema of the file instead.' },
  },
  examples: ['switchyard export switchyard.yaml', 'switchyard export --schema > switchyard.schema.json'],
  async run(call) {
    const installed = await readInstalled(call.api)
    const { file, variables } = configurationOf(installed, { withKeys: !call.has('without-keys') })
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
      throw new CommandProblem(`${path} cannot be written: ${(error as Error).message}.`, EXIT.usage)
    }
    if (call.json) call.out.json({ file: path, variables })
    else {
      call.out.line(
        `${path} has ${KINDS.map((kind) => `${file[kind].length} ${NOUNS[kind]}${file[kind].length === 1 ? '' : 's'}`).join(', ')}.`,
      )
      if (variables.length > 0) call.out.remark(`To apply it elsewhere, set ${variables.join(', ')}.`)
    }
    return EXIT.ok
  },
}
